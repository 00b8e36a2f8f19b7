-- Sliding logs and sliding windows: step/events.rs. s1 is what is used, s2 the entries, oldest first: 7 bytes of time and 4 of
-- units each. A charge reads the oldest and the newest, and copies the text once.
-- n: 6, limit, window, precision (0 for the exact log)

steps[6] = function()
  local ENTRY = '>I7I4'
  local SIZE = 11
  local pack, unpack, sub = struct.pack, struct.unpack, string.sub

  local function newest(entries)
    if #entries == 0 then
      return nil
    end
    return (unpack(ENTRY, entries, #entries - SIZE + 1))
  end

  -- When a charge counts: never before the newest entry was made.
  local function counts_at(n, entries, now)
    local time = newest(entries)
    return time and max(now, time - n[4]) or now
  end

  local function entered(n, now)
    if n[4] == 0 then
      return now
    end
    return ((muldiv(now, 1, n[4])) + 1) * n[4]
  end

  -- Where the first entry stands that has not left the window, and the units of those that have.
  local function live(n, entries, now)
    local place, gone = 1, 0
    while place < #entries do
      local time, units = unpack(ENTRY, entries, place)
      if time + n[3] > now then
        break
      end
      place, gone = place + SIZE, gone + units
    end
    return place, gone
  end

  local function forget(n, st, now)
    local entries = st.s2 or ''
    local at = counts_at(n, entries, now)
    local place, gone = live(n, entries, at)
    st.s1, st.s2 = (st.s1 or 0) - gone, sub(entries, place)
    return at
  end

  local step = {}

  function step.ask(n, st, now, cost, up_to)
    local entries = st.s2 or ''
    local at = counts_at(n, entries, now)
    local place, gone = live(n, entries, at)
    -- A lease is an entry of the future, not dated yet.
    local used = (st.s1 or 0) - gone + st.out
    local told, time, wanted = ALLOW, 0, used + cost
    if cost > n[2] then
      told = NEVER
    elseif cost > 0 and wanted > n[2] then
      told = DENY
      local excess, from = wanted - n[2], place
      while from < #entries do
        local left_at, units = unpack(ENTRY, entries, from)
        excess = excess - units
        if excess <= 0 then
          time = max(left_at + n[3] - now, 0)
          break
        end
        from = from + SIZE
      end
      for i = 1, excess > 0 and st.out > 0 and #st.leases or 0, 3 do
        excess = excess - st.leases[i + 1]
        if excess <= 0 then
          time = max(entered(n, st.leases[i + 2]) + n[3] - now, 0)
          break
        end
      end
    end
    local last
    if told < DENY and cost > 0 then
      used, last = wanted, entered(n, at)
    elseif place < #entries then
      last = newest(entries)
    end
    return told, time, max(n[2] - used, 0), last and max(last + n[3] - now, 0) or 0
  end

  -- Enters units at the end, which is where they belong.
  local function enter(n, st, time, cost)
    local entries = st.s2
    if #entries > 0 then
      local last, units = unpack(ENTRY, entries, #entries - SIZE + 1)
      if last == time and units + cost <= MOST_UNITS then
        entries, cost = sub(entries, 1, -SIZE - 1), units + cost
        st.s1 = st.s1 - units
      end
    end
    st.s1, st.s2 = st.s1 + cost, entries .. pack(ENTRY, time, cost)
  end

  function step.commit(n, st, now, cost)
    local at = forget(n, st, now)
    enter(n, st, entered(n, at), cost)
  end

  function step.trace(n, st, now)
    return (entered(n, counts_at(n, st.s2 or '', now)))
  end

  function step.refund(n, st, now, units)
    forget(n, st, now)
    while units > 0 and #st.s2 > 0 do
      local time, there = unpack(ENTRY, st.s2, #st.s2 - SIZE + 1)
      local taken = min(units, there)
      units, st.s1, st.s2 = units - taken, st.s1 - taken, sub(st.s2, 1, -SIZE - 1)
      if there > taken then
        st.s2 = st.s2 .. pack(ENTRY, time, there - taken)
      end
    end
  end

  function step.give_back(n, st, now, units, unused, entry)
    forget(n, st, now)
    local used = st.s1
    -- The first entry that is not older, by halves.
    local from, to = 0, #st.s2 / SIZE
    while from < to do
      local middle = floor((from + to) / 2)
      if unpack(ENTRY, st.s2, middle * SIZE + 1) < entry then
        from = middle + 1
      else
        to = middle
      end
    end
    local place = from * SIZE + 1
    while units > 0 and place < #st.s2 do
      local time, there = unpack(ENTRY, st.s2, place)
      if time ~= entry then
        break
      end
      local taken = min(units, there)
      local kept = there > taken and pack(ENTRY, time, there - taken) or ''
      st.s2 = sub(st.s2, 1, place - 1) .. kept .. sub(st.s2, place + SIZE)
      units, st.s1, place = units - taken, st.s1 - taken, place + #kept
    end
    return used - st.s1
  end

  step.owe = step.commit

  function step.idle(n, st, now)
    local last = newest(st.s2 or '')
    return last and max(last + n[3] - now, 0) or 0
  end

  function step.convert(n, from)
    return from[1] == 6 and from[3] == n[3] and from[4] == n[4]
  end

  function step.bring(n, st, now)
    local leases = st.leases
    st.s1, st.s2 = st.s1 or 0, st.s2 or ''
    while leases[3] and leases[3] <= now do
      local _, units, till = take_lease(st, 1)
      enter(n, st, max(entered(n, till), newest(st.s2) or 0), units)
    end
  end

  function step.lease(n, st, now, units, life)
    -- A log keeps every use for itself; there is nothing to date later.
    if n[4] == 0 then
      return nil
    end
    st.s1, st.s2 = st.s1 or 0, st.s2 or ''
    return now + life
  end

  function step.settle(n, st, now, unused, used)
    if used > 0 then
      step.commit(n, st, now, used)
    end
  end

  -- What is out is no entry yet: there are none, which is not the same as never used.
  function step.reset(n, st)
    st.s1, st.s2 = 0, ''
  end

  function step.take_back(n, st, now, units, since)
    step.give_back(n, st, now, units, false, entered(n, since))
  end

  function step.limit(n)
    return n[2]
  end

  return step
end
