-- Sliding counters: step/sliding_counter.rs. s1 is which window, s2 the count of the one before, s3 its own.
-- n: 5, limit, window

steps[5] = function()
  local function counters(n, st, now)
    local window = muldiv(now, 1, n[3])
    if not st.s1 then
      return window, 0, 0
    elseif window <= st.s1 then
      return st.s1, st.s2, st.s3
    elseif window == st.s1 + 1 then
      return window, st.s3, 0
    end
    return window, 0, 0
  end

  -- What the window before still weighs, in whole units, rounded up.
  local function weight(n, window, before, now)
    local covered = min(max((window + 1) * n[3] - now, 0), n[3])
    local whole, part = muldiv(before, covered, n[3])
    return part > 0 and whole + 1 or whole
  end

  -- How far into a window so many units weigh no more than what is spare.
  local function fades(n, before, spare)
    if before <= spare then
      return 0
    end
    return n[3] - (muldiv(spare, n[3], before))
  end

  local function opens_in(n, window, before, current, cost, now)
    local start, spare = window * n[3], n[2] - cost
    if spare >= current then
      start = start + fades(n, before, spare - current)
    else
      start = start + n[3] + fades(n, current, spare)
    end
    return max(start - now, 0)
  end

  local function idle_in(n, window, before, current, now)
    if before == 0 and current == 0 then
      return 0
    end
    return max((window + (current == 0 and 1 or 2)) * n[3] - now, 0)
  end

  local step = {}

  function step.ask(n, st, now, cost, up_to)
    local window, before, current = counters(n, st, now)
    local told, time, weighs = ALLOW, 0, weight(n, window, before, now)
    if cost > n[2] then
      told = NEVER
    elseif cost > 0 then
      if weighs + current + cost <= n[2] then
        current = current + cost
      else
        told, time = DENY, opens_in(n, window, before, current, cost, now)
      end
    end
    local left = max(n[2] - current - weighs, 0)
    return told, time, left, idle_in(n, window, before, current, now), window, before, current
  end

  function step.trace(n, st, now, cost, permit, window)
    return window
  end

  function step.refund(n, st, now, units)
    local window, before, current = counters(n, st, now)
    st.s1, st.s2, st.s3 = window, before, max(current - units, min(st.out, current))
  end

  function step.give_back(n, st, now, units, unused, window)
    local is_current, _, current = counters(n, st, now)
    if is_current ~= window then
      return 0
    end
    step.refund(n, st, now, units)
    return current - st.s3
  end

  function step.owe(n, st, now, units)
    local window, before, current = counters(n, st, now)
    st.s1, st.s2, st.s3 = window, before, current + units
  end

  function step.idle(n, st, now)
    local window, before, current = counters(n, st, now)
    return idle_in(n, window, before, current, now)
  end

  function step.convert(n, from)
    return from[1] == 5 and from[3] == n[3]
  end

  step.bring = lapse

  -- The older window weighs less as time passes, never more: what fits when it is leased fits whenever it is used.
  function step.lease(n, st, now, units, life)
    local window, before, current = counters(n, st, now)
    st.s1, st.s2, st.s3 = window, before, current + units
    return min(now + life, (window + 1) * n[3])
  end

  function step.settle(n, st, now, unused)
    local window, before, current = counters(n, st, now)
    st.s1, st.s2, st.s3 = window, before, max(current - unused, 0)
  end

  function step.reset(n, st, now, window)
    if st.out > 0 then
      st.s1, st.s2, st.s3 = window, 0, st.out
    end
  end

  function step.take_back(n, st, now, units, since)
    step.give_back(n, st, now, units, false, (muldiv(since, 1, n[3])))
  end

  function step.limit(n)
    return n[2]
  end

  return step
end
