-- Concurrency: step/concurrency.rs. s1 is how many units are held, s2 who holds them, whose time is up first standing first:
-- 7 bytes of permit, 4 of units, 7 of the time until which it holds.
-- n: 7, limit, max_hold

steps[7] = function()
  local HOLDER = '>I7I4I7'
  local SIZE = 18
  local pack, unpack, sub, find = struct.pack, struct.unpack, string.sub, string.find

  local function live(holders, now)
    local place, gone = 1, 0
    while place < #holders do
      local _, units, till = unpack(HOLDER, holders, place)
      if till > now then
        break
      end
      place, gone = place + SIZE, gone + units
    end
    return place, gone
  end

  local function last_in(holders, now)
    if #holders == 0 then
      return 0
    end
    local _, _, till = unpack(HOLDER, holders, #holders - SIZE + 1)
    return max(till - now, 0)
  end

  local function forget(st, now)
    local holders = st.s2 or ''
    local place, gone = live(holders, now)
    st.s1, st.s2 = (st.s1 or 0) - gone, sub(holders, place)
  end

  -- Nearly always at the end: later comers hold longer, unless the limit's numbers changed.
  local function insert(st, permit, units, till)
    local holders, place = st.s2, #st.s2 + 1
    while place > 1 do
      local _, _, other = unpack(HOLDER, holders, place - SIZE)
      if other <= till then
        break
      end
      place = place - SIZE
    end
    st.s2 = sub(holders, 1, place - 1) .. pack(HOLDER, permit, units, till) .. sub(holders, place)
    st.s1 = st.s1 + units
  end

  local function remove(st, permit)
    local name, from = pack('>I7', permit), 1
    while true do
      local place = find(st.s2, name, from, true)
      if not place then
        return 0
      end
      if (place - 1) % SIZE == 0 then
        local _, units = unpack(HOLDER, st.s2, place)
        st.s2 = sub(st.s2, 1, place - 1) .. sub(st.s2, place + SIZE)
        st.s1 = st.s1 - units
        return units
      end
      from = place + 1
    end
  end

  local step = {}

  function step.ask(n, st, now, cost, up_to)
    local holders = st.s2 or ''
    local _, gone = live(holders, now)
    local held, told, reset = (st.s1 or 0) - gone, ALLOW, last_in(holders, now)
    if cost > n[2] then
      told = NEVER
    elseif cost > 0 then
      if held + cost > n[2] then
        told = WHEN_RELEASED
      else
        held, reset = held + cost, max(reset, n[3])
      end
    end
    return told, 0, max(n[2] - held, 0), reset
  end

  function step.commit(n, st, now, cost, permit, life)
    forget(st, now)
    insert(st, permit, cost, now + (life or n[3]))
  end

  function step.trace(n, st, now, cost, permit)
    return permit
  end

  function step.give_back(n, st, now, units, unused, permit)
    return step.leave(n, st, now, permit)
  end

  function step.refund() end

  function step.owe() end

  function step.leave(n, st, now, permit)
    forget(st, now)
    return remove(st, permit)
  end

  function step.renew(n, st, now, permit)
    forget(st, now)
    local units = remove(st, permit)
    if units > 0 then
      insert(st, permit, units, now + n[3])
    end
    return units
  end

  function step.idle(n, st, now)
    return last_in(st.s2 or '', now)
  end

  function step.convert(n, from)
    return from[1] == 7
  end

  function step.take_back(n, st, now, units, since, permit)
    step.leave(n, st, now, permit)
  end

  function step.limit(n)
    return n[2]
  end

  return step
end
