-- Guava's two limiters: step/smooth.rs, double for double. s1 is when the bucket is even, s2 the permits stored.
-- n: 3, which, stable, max, initial, cool, warms up (1), threshold, slope, drops fractions (1)

steps[3] = function()
  local function read(n, st)
    if not st.s1 then
      return st.birth, n[5]
    end
    return st.s1, st.s2
  end

  local function resync(n, even, permits, now)
    if now <= even then
      return even, permits
    end
    return now, min(n[4], permits + (now - even) / n[6])
  end

  local function warm_terms(n, stored, spend)
    local above = stored - n[8]
    if above <= 0 then
      return 0, n[3] * spend
    end
    local sloped = min(above, spend)
    local area = sloped * ((n[3] + above * n[9]) + (n[3] + (above - sloped) * n[9])) / 2
    return area, n[3] * (spend - sloped)
  end

  local function price(n, stored, spend)
    if n[7] == 0 then
      return 0
    end
    local sloped, flat = warm_terms(n, stored, spend)
    return floor(sloped) + floor(flat)
  end

  local function price_of_all(n, stored)
    if n[7] == 0 then
      return 0
    end
    stored = max(stored, 0)
    local sloped, flat = warm_terms(n, stored, stored)
    return sloped + flat
  end

  local function spent_at(n, even, permits, cost)
    local spent = min(permits, cost)
    local fresh, kept = cost - spent, permits - spent
    if n[10] == 1 then
      return even + price(n, permits, spent) + floor(fresh * n[3]), kept
    elseif kept > 0 then
      return even + max(floor(price_of_all(n, permits)) - floor(price_of_all(n, kept)), 0), kept
    end
    local exact = price_of_all(n, permits) + fresh * n[3]
    return even + floor(exact), kept - (exact - floor(exact)) / n[3]
  end

  -- When the bucket is even again, no farther off than can be counted, and what is stored then.
  local function spend(n, even, permits, cost)
    local then_even, stored = spent_at(n, even, permits, cost)
    return min(then_even, EXACT - 1), stored
  end

  -- At most thirty thousand years, which every answer can tell.
  local function idle_in(n, even, permits, now)
    local idle = max(even - now, 0) + ceil(max(n[4] - permits, 0) * n[6])
    return idle < 1e18 and idle or 1e18
  end

  local step = {}

  function step.ask(n, st, now, cost, up_to)
    local even, permits = read(n, st)
    local told, time = ALLOW, 0
    if cost > 0 and even > now then
      local wait, patience = even - now, max(up_to, 0)
      if wait <= patience then
        told, time = WAIT, wait
      else
        told, time = DENY, wait - patience
      end
    end
    even, permits = resync(n, even, permits, now)
    local made = told < DENY and cost > 0
    if made then
      even, permits = spend(n, even, permits, cost)
    end
    local reset = (not st.s1 and not made) and 0 or idle_in(n, even, permits, now)
    return told, time, floor(max(permits, 0)), reset, even, permits
  end

  function step.trace(n, st, now, cost, permit, even, permits)
    local before_even, before_permits = read(n, st)
    before_even, before_permits = resync(n, before_even, before_permits, now)
    return max(even - before_even, 0), before_permits - permits, even, permits, cost, st.returned
  end

  -- As smooth_taken.rs: what the charge moved, the part that is not paid, and of that what time has not made up for. Where it
  -- was not used, all of that or nothing: a charge of any size passes once the limiter is even, so a part that came back could
  -- be followed by too much before a later turn.
  function step.give_back(n, st, now, units, unused, micros, moved, even, permits, cost, counted)
    if not st.s1 then
      return 0
    end
    if units < cost then
      local really_even, really = spend(n, even - micros, permits + moved, cost - units)
      micros, moved = max(even - really_even, 0), really - permits
    end
    local of_micros, of_moved = micros, moved
    if now > even - micros then
      local with_even, with = resync(n, even, permits, now)
      local without_even, without = resync(n, even - micros, permits + moved, now)
      micros, moved = max(with_even - without_even, 0), without - with
    end
    local held_even, held = resync(n, st.s1, st.s2, now)
    local left_even, left = resync(n, even, permits, now)
    local is_last = returned_since(st, counted) == 0 and held_even <= left_even and held >= left
    if unused and not is_last then
      return 0
    end
    st.s1, st.s2 = max(held_even - micros, now), min(held + moved, n[4])
    local share
    if of_micros > 0 then
      share = (held_even - st.s1) / of_micros
    elseif of_moved > 0 then
      share = (st.s2 - held) / of_moved
    else
      return 0
    end
    local back = max(units * share, 0)
    if is_last then
      return min(floor(back), units)
    end
    return min(floor(back), units), min(ceil(back), units), 0
  end

  function step.refund(n, st, now, units)
    if not st.s1 then
      return
    end
    local even, permits = resync(n, st.s1, st.s2, now)
    if permits > 0 and n[7] == 1 then
      local restored = min(units, n[4] - permits)
      local paid, booked = price(n, permits + restored, restored), max(even - now, 0)
      if paid > booked then
        restored = restored * (booked / paid)
      end
      st.s1, st.s2 = even - min(paid, booked), permits + restored
      return
    end
    local unbooked = min(max(even - now, 0) / n[3], units)
    local _, unseen = resync(n, st.birth, n[5], now)
    st.s1 = max(even - floor(unbooked * n[3]), now)
    st.s2 = min(permits + (units - unbooked), max(unseen, permits))
  end

  function step.owe(n, st, now, units)
    local even, permits = read(n, st)
    even, permits = resync(n, even, permits, now)
    st.s1, st.s2 = spend(n, even, permits, units)
  end

  function step.idle(n, st, now)
    if not st.s1 then
      return 0
    end
    local even, permits = resync(n, st.s1, st.s2, now)
    return idle_in(n, even, permits, now)
  end

  function step.convert(n, from, st, now)
    if from[1] ~= 3 or from[2] ~= n[2] then
      return false
    end
    if st.s1 then
      local even, permits = resync(from, st.s1, st.s2, now)
      if from[4] > 0 then
        permits = permits * n[4] / from[4]
      else
        permits = n[7] == 1 and n[4] or 0
      end
      st.s1, st.s2 = even, permits
    end
    return true
  end

  function step.limit(n)
    return max(floor(n[4]), 1)
  end

  return step
end
