-- Token and leaky buckets: step/bucket.rs. The level is s1 whole units and s2 credits of a further one, at the time st.at;
-- both stay below 2^53 where the due point of the step in memory needs 127 bits.
-- n: 1, which, earn (credits a microsecond), price (credits a unit), capacity, free, books above its capacity (1), born short of

steps[1] = function()
  -- A level, after so many microseconds.
  local function drained(n, units, rest, passed)
    if passed * n[3] > 2 * (units + 1) * n[4] then
      return 0, 0
    end
    local whole, part = muldiv(passed, n[3], n[4])
    rest = rest - part
    if rest < 0 then
      whole, rest = whole + 1, rest + n[4]
    end
    if whole > units then
      return 0, 0
    end
    return units - whole, rest
  end

  -- The level of a key never used: nothing, once an initially short bucket has filled.
  local function unseen(n, st, now)
    if n[8] == 0 then
      return 0, 0
    end
    return drained(n, n[8], 0, now - st.birth)
  end

  local function level(n, st, now)
    if not st.s1 then
      return unseen(n, st, now)
    end
    return drained(n, st.s1, st.s2, now - st.at)
  end

  -- Microseconds until a level has drained, rounded up.
  local function drains_in(n, units, rest)
    local whole, part = muldiv(units, n[4], n[3])
    return whole + div_up(part + rest, n[3])
  end

  local function idle_in(n, st, now, units, rest)
    local u, r = unseen(n, st, now)
    if units < u or (units == u and rest <= r) then
      return 0
    end
    return drains_in(n, units, rest)
  end

  -- A level less units and credits, never below that of a key never used, or what is leased.
  local function less(n, st, now, units, rest, by, part)
    units, rest = units - by, rest - part
    if rest < 0 then
      units, rest = units - 1, rest + n[4]
    end
    local u, r = unseen(n, st, now)
    if st.out > u then
      u, r = st.out, 0
    end
    if units < u or (units == u and rest < r) then
      return u, r
    end
    return units, rest
  end

  -- Microseconds until a level is down to so many units, while leases may keep it up: what is out counts as used until then.
  local function comes_down_in(n, st, now, units, rest, room)
    local later = 0
    if st.out > room then
      later = max(st.leases[#st.leases] - now, 0)
      units, rest = drained(n, units, rest, later)
      if units < st.out then
        units, rest = st.out, 0
      end
    end
    local over = units - room
    if over > 0 or (over == 0 and rest > 0) then
      return later + drains_in(n, over, rest)
    end
    return later
  end

  local step = {}

  function step.ask(n, st, now, cost, up_to)
    local units, rest = level(n, st, now)
    local after = units + cost
    local told, time = ALLOW, 0
    if cost > n[5] then
      told = NEVER
    elseif cost > 0 then
      local over, wait, full = after - n[6], 0, 0
      if over > 0 or (over == 0 and rest > 0) then
        wait = st.out > 0 and comes_down_in(n, st, now, units, rest, n[6] - cost) or drains_in(n, over, rest)
        local above = after - (n[7] == 1 and FARTHEST or n[5])
        if above > 0 or (above == 0 and rest > 0) then
          full = drains_in(n, above, rest)
        end
      end
      local patience = up_to >= 0 and up_to or (n[7] == 1 and 0 or huge)
      if full == 0 and wait > 0 and wait <= patience then
        told, time = WAIT, wait
      elseif full > 0 or wait > 0 then
        told, time = DENY, max(full, wait - patience)
      end
    end
    if told >= DENY then
      after = units
    end
    local left = n[5] - after - (rest > 0 and 1 or 0)
    return told, time, left > 0 and left or 0, idle_in(n, st, now, after, rest), after, rest
  end

  function step.trace(n, st, now, cost, permit, units, rest)
    return units, rest, now, st.returned, st.returned_rest
  end

  -- One level less another, in units and credits; below zero the units are negative.
  local function difference(n, units, rest, by, part)
    if rest < part then
      return units - by - 1, rest - part + n[4]
    end
    return units - by, rest - part
  end

  -- Whether somebody is booked ahead at this level.
  local function is_booked(n, units, rest)
    return units > n[6] or (units == n[6] and rest > 0)
  end

  -- A level, with what came back since a charge found so much counted.
  local function with_returned(n, st, units, rest, counted, counted_rest)
    if st.returned == FARTHEST then
      return FARTHEST, 0
    end
    local more, part = difference(n, st.returned, st.returned_rest, counted or 0, counted_rest or 0)
    if more < 0 then
      return units, rest
    elseif part > 0 and rest >= n[4] - part then
      return units + more + 1, rest - (n[4] - part)
    end
    return units + more, rest + part
  end

  function step.give_back(n, st, now, units, unused, left_units, left_rest, left_at, counted, counted_rest)
    local there, part = drained(n, left_units, left_rest, max(now - left_at, 0))
    local u, r = level(n, st, now)
    local back, rest = units, 0
    local all, all_rest = with_returned(n, st, u, r, counted, counted_rest)
    local later, later_rest = difference(n, all, all_rest, there, part)
    local is_last = later < 0 or (later == 0 and later_rest == 0)
    if not is_last and (unused == CANCELLED or (unused == HELD and is_booked(n, u, r))) then
      back, rest = difference(n, units, 0, later, later_rest)
    end
    if there < back or (there == back and part < rest) then
      back, rest = there, part
    end
    if back < 0 then
      back, rest = 0, 0
    end
    st.s1, st.s2 = less(n, st, now, u, r, back, rest)
    local came, came_rest = difference(n, u, r, st.s1, st.s2)
    if is_last then
      return max(came, 0)
    end
    return max(came, 0), came, came_rest
  end

  -- Gives back what a lease or an unanswered charge took. Counts it only while somebody is booked ahead, so that the keys of
  -- leases stay plain.
  local function put_back(n, st, now, units, rest)
    local u, r = level(n, st, now)
    local idle = idle_in(n, st, now, u, r)
    st.s1, st.s2 = less(n, st, now, u, r, units, rest)
    if st.returned_until > 0 or is_booked(n, u, r) then
      count_returned(st, idle, difference(n, u, r, st.s1, st.s2))
    end
  end

  function step.refund(n, st, now, units)
    local u, r = level(n, st, now)
    st.s1, st.s2 = less(n, st, now, u, r, units, 0)
  end

  function step.owe(n, st, now, units)
    local u, r = level(n, st, now)
    st.s1, st.s2 = min(u + units, max(u, FARTHEST)), r
  end

  function step.idle(n, st, now)
    local u, r = level(n, st, now)
    return idle_in(n, st, now, u, r)
  end

  -- Units and credits consumed; none of a key that is as if never used.
  function step.consumed(n, st, now)
    local u, r = level(n, st, now)
    if idle_in(n, st, now, u, r) == 0 then
      return 0, 0
    end
    return u, r
  end

  -- Consumes units + rest / price of as many as there were, rounded against the caller.
  function step.consume(n, st, now, units, rest, price, capacity)
    if units == 0 and rest == 0 then
      st.s1, st.s2 = nil, nil
      return
    end
    -- (units + rest / price) * n[5] / capacity, in whole units and then in credits, a division at a time.
    local whole, over = muldiv(units, n[5], capacity)
    local more, part_of_price = muldiv(rest, n[5], price)
    local carried, left = muldiv(over + more, 1, capacity)
    whole = whole + carried
    local of_left, part_of_capacity = muldiv(left, n[4], capacity)
    local of_part, beyond = muldiv(part_of_price, n[4], price)
    local again, over_again = muldiv(part_of_capacity + of_part, 1, capacity)
    local up = of_left + again + ((over_again > 0 or beyond > 0) and 1 or 0)
    local part
    more, part = muldiv(up, 1, n[4])
    whole = whole + more
    local u, r = unseen(n, st, now)
    if whole < u or (whole == u and part < r) then
      whole, part = u, r
    end
    st.s1, st.s2 = min(whole, FARTHEST), part
  end

  function step.convert(n, from, st, now)
    if from[1] == 1 and from[2] == n[2] then
      local units, rest = step.consumed(from, st, now)
      -- What is leased stays as many units as it is.
      step.consume(n, st, now, max(units - st.out, 0), rest, from[4], from[5])
      if st.out > 0 then
        st.s1, st.s2 = (st.s1 or 0) + st.out, st.s2 or 0
      end
    elseif from[1] == 2 and n[2] == 1 then
      local units = stepped(2).consumed(from, st, now)
      step.consume(n, st, now, units, 0, 1, from[4])
    else
      return false
    end
    return true
  end

  -- Time pays only for what was used, and what is out may be used at any instant: the level stays above it.
  local function drain_to(n, st, at)
    local units, rest = drained(n, st.s1, st.s2, max(at - st.at, 0))
    if units < st.out then
      units, rest = st.out, 0
    end
    st.s1, st.s2, st.at = units, rest, max(at, st.at)
  end

  function step.bring(n, st, now)
    local leases = st.leases
    while leases[3] and leases[3] <= now do
      drain_to(n, st, leases[3])
      take_lease(st, 1)
    end
    drain_to(n, st, now)
  end

  function step.lease(n, st, now, units, life)
    -- What waits for the pace, or may be booked ahead, is not lent.
    if n[7] == 0 then
      return nil
    end
    local u, r = level(n, st, now)
    st.s1, st.s2 = u + units, r
    return now + life
  end

  function step.settle(n, st, now, unused)
    put_back(n, st, now, unused, 0)
  end

  function step.reset(n, st)
    if st.out > 0 then
      st.s1, st.s2 = st.out, 0
    end
  end

  -- What a charge took at that time, less all that time has earned since: at least that is still there.
  function step.take_back(n, st, now, units, since)
    local there, part = drained(n, units, 0, max(now - since, 0))
    if there > 0 or part > 0 then
      put_back(n, st, now, there, part)
    end
  end

  function step.limit(n)
    return n[5]
  end

  return step
end
