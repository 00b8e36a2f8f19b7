-- The token bucket that refills by interval: step/interval.rs. s1 is when it was refilled last, s2 what is consumed.
-- n: 2, amount, period, burst, initial

steps[2] = function()
  -- When it was refilled, what is consumed, whether a key never used would look the same.
  local function level(n, st, now, at, consumed)
    local untouched = not at
    if untouched then
      at, consumed = st.birth, n[4] - n[5]
    end
    local periods = muldiv(max(now - at, 0), 1, n[3])
    if periods >= div_up(consumed, n[2]) then
      return max(now, at), 0, true
    end
    return at + periods * n[3], consumed - n[2] * periods, untouched
  end

  local function refills_in(n, at, units, now)
    return max(at + div_up(units, n[2]) * n[3] - now, 0)
  end

  local step = {}

  function step.ask(n, st, now, cost, up_to)
    local at, consumed, untouched = level(n, st, now, st.s1, st.s2)
    local told, time, wanted = ALLOW, 0, consumed + cost
    if cost > n[4] then
      told = NEVER
    elseif cost > 0 and wanted > n[4] then
      local wait, patience = refills_in(n, at, wanted - n[4], now), max(up_to, 0)
      if wait <= patience then
        told, time = WAIT, wait
      else
        told, time = DENY, wait - patience
      end
    end
    if told < DENY and cost > 0 then
      consumed, untouched = wanted, false
    end
    local reset = untouched and 0 or refills_in(n, at, consumed, now)
    return told, time, max(n[4] - consumed, 0), reset, at, consumed
  end

  function step.trace(n, st, now, cost, permit, at, consumed)
    return at, consumed, st.returned
  end

  function step.refund(n, st, now, units)
    local at, consumed = level(n, st, now, st.s1, st.s2)
    local _, short = level(n, st, now)
    consumed = max(consumed - units, min(short, consumed))
    if consumed == 0 then
      st.s1, st.s2 = nil, nil
    else
      st.s1, st.s2 = at, consumed
    end
  end

  function step.give_back(n, st, now, units, unused, left_at, left_consumed, counted)
    local _, there = level(n, st, now, left_at, left_consumed)
    local _, consumed = level(n, st, now, st.s1, st.s2)
    local back, later = min(there, units), consumed + returned_since(st, counted) - there
    if unused == CANCELLED or (unused == HELD and consumed > n[4]) then
      back = min(there, units - max(later, 0))
    end
    if back <= 0 then
      return 0
    end
    step.refund(n, st, now, back)
    local came = consumed - (st.s2 or 0)
    if later <= 0 then
      return came
    end
    return came, came, 0
  end

  function step.owe(n, st, now, units)
    local at, consumed = level(n, st, now, st.s1, st.s2)
    st.s1, st.s2 = at, consumed + units
  end

  function step.idle(n, st, now)
    local at, consumed, untouched = level(n, st, now, st.s1, st.s2)
    return untouched and 0 or refills_in(n, at, consumed, now)
  end

  function step.consumed(n, st, now)
    local _, consumed, untouched = level(n, st, now, st.s1, st.s2)
    return untouched and 0 or consumed
  end

  -- Consumes units + rest / price of as many as there were, rounded against the caller.
  local function consume(n, st, at, units, rest, price, capacity)
    local whole, over = muldiv(units, n[4], capacity)
    local more, part = muldiv(rest, n[4], price)
    local carried, left = muldiv(over + more, 1, capacity)
    whole = whole + carried + ((left > 0 or part > 0) and 1 or 0)
    if whole == 0 then
      st.s1, st.s2 = nil, nil
    else
      st.s1, st.s2 = at, whole
    end
  end

  function step.convert(n, from, st, now)
    if from[1] == 2 then
      local at = level(from, st, now, st.s1, st.s2)
      consume(n, st, at, step.consumed(from, st, now), 0, 1, from[4])
    elseif from[1] == 1 and from[2] == 1 then
      local units, rest = stepped(1).consumed(from, st, now)
      consume(n, st, now, units, rest, from[4], from[5])
    else
      return false
    end
    return true
  end

  -- Whether nothing was refilled since a charge of that time: then all of it is still there.
  function step.take_back(n, st, now, units, since)
    local at = level(n, st, now, st.s1, st.s2)
    if at <= since then
      step.refund(n, st, now, units)
    end
  end

  function step.limit(n)
    return n[4]
  end

  return step
end
