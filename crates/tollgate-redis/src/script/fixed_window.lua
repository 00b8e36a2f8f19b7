-- Fixed windows: step/fixed_window.rs. s1 is which window, s2 what is used of it.
-- n: 4, align, limit, window, calendar
-- A calendar's windows are told by the asking node: st.birth is where the current one starts, where it ends, where the next ends.

steps[4] = function()
  local EPOCH, FIRST_HIT, FOREVER, CALENDAR = 1, 2, 3, 4

  -- The open window, what is used of it, and when it ends; -1 for never.
  local function open(n, st, now)
    local align, window, stored = n[2], n[4], st.s1
    local place, ends_in
    if align == EPOCH then
      place = max((muldiv(now, 1, window)), stored or 0)
      ends_in = max((place + 1) * window - now, 0)
    elseif align == FIRST_HIT then
      place = (stored and now < stored + window) and stored or now
      ends_in = place + window - now
    elseif align == FOREVER then
      place, ends_in = 0, -1
    else
      local bounds, at = st.birth, max(now, stored or 0)
      if at < bounds[2] then
        place, ends_in = bounds[1], bounds[2] - now
      else
        place, ends_in = max(bounds[2], stored or 0), bounds[3] - now
      end
      -- The node's idea of the time is older than a whole window. It learns better from this answer; until then nothing that
      -- others have counted may be taken for over.
      if ends_in <= 0 then
        ends_in = bounds[3] - bounds[2]
      end
    end
    return place, stored == place and st.s2 or 0, ends_in
  end

  local step = {}

  function step.ask(n, st, now, cost, up_to)
    local place, used, ends_in = open(n, st, now)
    local told, time, wanted = ALLOW, 0, used + cost
    if cost > 0 and wanted > n[3] then
      if cost > n[3] or ends_in == -1 then
        told = NEVER
      else
        told, time = DENY, ends_in
      end
      wanted = used
    end
    local opens = n[2] == FIRST_HIT and used == 0 and st.s1 ~= place
    local reset = (opens and wanted == 0) and 0 or ends_in
    return told, time, max(n[3] - wanted, 0), reset, place, wanted
  end

  function step.trace(n, st, now, cost, permit, place)
    return place
  end

  function step.refund(n, st, now, units)
    if st.s1 and open(n, st, now) == st.s1 then
      st.s2 = max(st.s2 - units, min(st.out, st.s2))
    end
  end

  function step.give_back(n, st, now, units, unused, place)
    if open(n, st, now) ~= place then
      return 0
    end
    local used = st.s2 or 0
    step.refund(n, st, now, units)
    return used - (st.s2 or 0)
  end

  function step.owe(n, st, now, units)
    local place, used = open(n, st, now)
    st.s1, st.s2 = place, used + units
  end

  function step.idle(n, st, now)
    if not st.s1 then
      return 0
    end
    local place, used, ends_in = open(n, st, now)
    if used == 0 and not (n[2] == FIRST_HIT and place == st.s1) then
      return 0
    end
    return ends_in
  end

  function step.convert(n, from, st)
    return from[1] == 4 and from[2] == n[2] and from[4] == n[4] and from[5] == n[5]
  end

  step.bring = lapse

  -- A lease ends with its window, so that what is used of it is used where it is counted.
  function step.lease(n, st, now, units, life)
    local place, used, ends_in = open(n, st, now)
    -- A lease is no hit: it opens no window that waits for the first one.
    if n[2] == FIRST_HIT and st.s1 ~= place then
      return nil
    end
    st.s1, st.s2 = place, used + units
    return now + (ends_in < 0 and life or min(life, ends_in))
  end

  function step.settle(n, st, now, unused)
    st.s2 = max(st.s2 - unused, 0)
  end

  function step.reset(n, st, now, place)
    if st.out > 0 then
      st.s1, st.s2 = place, st.out
    end
  end

  -- Whether a charge of that time is counted in the window that is open.
  function step.take_back(n, st, now, units, since)
    local place = open(n, st, now)
    local began = n[2] == EPOCH and place * n[4] or place
    if st.s1 == place and since >= began then
      step.refund(n, st, now, units)
    end
  end

  function step.limit(n)
    return n[3]
  end

  return step
end
