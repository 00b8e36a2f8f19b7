-- Reading and writing what a key has used. A state is one string of MessagePack values:
--   "tg1", generation, epoch, at, numbers, granted, banned until, held for others, leases, s1, s2, s3
--   and, where returns are counted (arithmetic.lua): returned, its credits, until when the count matters
-- or, of a bucket of which nothing but the level is known, the fewer ones that one.lua tells of, each in eight bytes:
--   "tg2", generation, numbers, epoch, expires, at, s1, s2
-- numbers is the limit as it was when the state was written; a node with an older generation obeys it, one with a newer
-- converts. The epoch tells states of one key apart: what was taken in an earlier one is not given back.

local FORMAT, PLAIN = 'tg1', 'tg2'
-- A quota for good, and units granted by hand, are kept this long after their last use.
local FOR_GOOD = 10 * 365 * 86400 * 1000000
local GRANTS_LAST = 30 * 86400 * 1000000
local PASSED_IN_TTL = 3600000

local pack, unpack = cmsgpack.pack, cmsgpack.unpack

local place = 3
local function take()
  local value = arg[place]
  place = place + 1
  return value
end

local limits = {}
for i = 1, take() do
  local _, gen, blob = unpack(take())
  limits[i] = { blob = blob, gen = gen, birth = arg[place + 1], since = arg[place + 2] }
  place = place + LIMIT - 1
end
place = place + keys

local function numbers_of(limit)
  if not limit.n then
    limit.n = { unpack(limit.blob) }
  end
  return limit.n
end

local states = {}

local function begin(st)
  st.epoch, st.at, st.now, st.granted, st.banned, st.pending, st.leases, st.out = now, now, now, 0, 0, 0, 0, 0
  st.s1, st.s2, st.s3 = nil, nil, nil
  st.returned, st.returned_rest, st.returned_until = 0, 0, 0
end

-- How many numbers each kind has, and which of them must not be zero.
local SHAPES = {
  { 8, 3, 4, 5 }, { 5, 2, 3, 4 }, { 10, 3 }, { 4, 3 }, { 3, 2, 3 }, { 4, 2, 3 }, { 3, 2, 3 },
}
-- How long an entry is where a state is a text of them.
local ENTRIES = { [6] = 11, [7] = 18 }

-- Whole, as far as it matters, and nothing that a loop would never come to the end of.
local function is_count(value)
  return type(value) == 'number' and value >= 0 and value < EXACT
end

-- Whether these are the numbers of a limit. Those that the caller sent need no test.
local function is_limit(blob)
  local ok, n = pcall(function()
    return { unpack(blob) }
  end)
  local shape = ok and SHAPES[n[1]]
  if not shape then
    return nil
  end
  for i = 1, shape[1] do
    if not is_count(n[i]) and not (n[1] == 3 and type(n[i]) == 'number' and n[i] >= 0 and n[i] < huge) then
      return nil
    end
    -- Only smooth limits have fractions. In another limit a tiny one would divide to more than any answer can say.
    if n[1] ~= 3 and n[i] ~= floor(n[i]) then
      return nil
    end
    -- A negative zero turns what it divides to the other side.
    if n[i] == 0 and 1 / n[i] < 0 then
      return nil
    end
  end
  for i = 2, #shape do
    if n[shape[i]] == 0 then
      return nil
    end
  end
  local align = n[1] == 4 and n[2]
  if align and (align < 1 or align > 4 or align ~= floor(align) or (align <= 2 and n[4] == 0)
    or (align == 4 and type(n[5]) ~= 'string')) then
    return nil
  end
  return n
end

-- Whether this is a list of so many fields each, all of them numbers but for what may be a text.
local function is_list(list, text)
  if list == 0 then
    return true
  end
  if type(list) ~= 'table' or #list == 0 or #list % 3 ~= 0 then
    return false
  end
  for i = 1, #list do
    local is_text = text and i % 3 == 0
    if is_text then
      local ok, epoch, granted, own = pcall(unpack, list[i])
      if not ok or not is_count(epoch) or not is_count(granted) or not is_count(own) then
        return false
      end
    elseif not is_count(list[i]) then
      return false
    end
  end
  return true
end

-- Whether the values are a state at all, and the kind's own.
local function is_readable(kind, gen, epoch, at, granted, banned, pending, leases, s1, s2, s3)
  if not (is_count(gen) and is_count(epoch) and is_count(at) and is_count(granted) and is_count(banned)) then
    return false
  end
  if not is_list(pending, true) or not is_list(leases, false) or (leases ~= 0 and (s1 == nil or kind == 2 or kind == 3 or kind == 7)) then
    return false
  end
  if s1 == nil then
    return s2 == nil and s3 == nil
  end
  if not is_count(s1) or (kind == 5) ~= is_count(s3) then
    return false
  end
  local size = ENTRIES[kind]
  if size then
    if type(s2) ~= 'string' or #s2 % size ~= 0 then
      return false
    end
    -- Times are in order, so the newest speaks for them all.
    return kind ~= 6 or s2 == '' or is_count((struct.unpack('>I7', s2, #s2 - size + 1)))
  elseif kind == 3 then
    return type(s2) == 'number' and s2 > -huge and s2 < huge
  end
  return is_count(s2)
end

local give_back

-- The state is now of this limit's numbers, or the limit of the state's where that is newer.
local function agree(st, limit, gen, blob, from)
  if blob == st.blob then
    st.gen = max(gen, st.gen)
    return
  end
  if st.out > 0 then
    stepped(from[1]).bring(from, st, st.now)
  end
  local follows_calendar = from[1] == 4 and from[2] == 4
  if gen > st.gen and (type(st.birth) == 'table') == follows_calendar then
    st.gen, st.blob, st.n, st.step = gen, blob, from, stepped(from[1])
    return
  elseif gen > st.gen then
    -- Newer numbers that this node cannot follow, not knowing where the calendar's windows are, are not its to undo.
    st.flaw = -2
    return
  end
  -- As of when the numbers changed, where that is known: until then the old ones held.
  local since = limit.since >= 0 and min(max(limit.since, st.at), st.now) or st.now
  if not st.step.convert(st.n, from, st, since) then
    st.s1, st.s2, st.s3, st.leases, st.out = nil, nil, nil, 0, 0
  end
  st.at, st.epoch = since, max(now, st.epoch + 1)
  -- Nothing that was charged before comes back.
  st.returned, st.returned_rest, st.returned_until = 0, 0, 0
  if st.out > 0 and not st.step.bring then
    -- What is out counts as used already; of this kind nothing is lent.
    st.leases, st.out = 0, 0
  end
  st.turned = gen < st.gen
end

-- What a key has used. Where that cannot be read, flaw is -1 (damaged: it will be removed) or -2 (a later format).
local function state_of(key)
  local st = states[key]
  if st then
    return st
  end
  local limit = limits[arg[limit_of + key]]
  local n = numbers_of(limit)
  st = { key = key, n = n, step = stepped(n[1]), birth = limit.birth, gen = limit.gen, blob = limit.blob }
  states[key] = st
  begin(st)
  local raw = redis.pcall('GET', KEYS[key])
  if not raw then
    return st
  end
  st.stored = true
  if type(raw) == 'table' then
    st.flaw = -1
    return st
  end
  local ok, format, gen, epoch, at, blob, granted, banned, pending, leases, s1, s2, s3, returned, returned_rest, returned_until =
    pcall(unpack, raw)
  if ok and format == PLAIN then
    -- Here they stand in another order.
    blob, epoch, at, s1, s2, s3 = epoch, at, granted, banned, pending, nil
    granted, banned, pending, leases, returned = 0, 0, 0, 0, nil
  end
  local from = ok and (format == FORMAT or format == PLAIN) and (blob == st.blob and n or is_limit(blob))
  if not from or (format == PLAIN and from[1] ~= 1)
    or not is_readable(from[1], gen, epoch, at, granted, banned, pending, leases, s1, s2, s3)
    or not (returned == nil or (is_count(returned) and is_count(returned_rest) and is_count(returned_until))) then
    local is_later = ok and type(format) == 'string' and string.match(format, '^tg%d+$') and format ~= FORMAT and format ~= PLAIN
    st.flaw = is_later and -2 or -1
    return st
  end
  st.epoch, st.at, st.granted, st.banned, st.pending = epoch, at, granted, banned, pending
  st.s1, st.s2, st.s3 = s1, s2, s3
  if returned then
    st.returned, st.returned_rest, st.returned_until = returned, returned_rest, returned_until
  end
  if leases ~= 0 then
    st.leases = leases
    for i = 2, #leases, 3 do
      st.out = st.out + leases[i]
    end
  end
  -- Time does not go back.
  st.now = max(now, at)
  agree(st, limit, gen, blob, from)
  if st.flaw then
    return st
  end
  if st.out > 0 then
    st.step.bring(st.n, st, st.now)
  end
  if pending ~= 0 then
    -- What was held for a set and not confirmed in time is given back.
    local kept = {}
    for i = 1, #pending, 3 do
      if pending[i + 1] <= st.now then
        give_back(st, pending[i + 2], huge, HELD)
      else
        kept[#kept + 1], kept[#kept + 2], kept[#kept + 3] = pending[i], pending[i + 1], pending[i + 2]
      end
    end
    st.pending = #kept > 0 and kept or 0
  end
  if st.returned_until > 0 and st.returned_until <= st.now and st.step.idle(st.n, st, st.now) == 0 then
    st.returned, st.returned_rest, st.returned_until = 0, 0, 0
  end
  return st
end

-- Says that what is used was brought up to now.
local function touch(st)
  st.at, st.dirty = st.now, true
end

-- Gives back up to so many units of what a charge took: the limit's own first, which were spent last.
-- Returns how many came back.
function give_back(st, taken, units, unused)
  local epoch, granted, own, t1, t2, t3, t4, t5, t6 = unpack(taken)
  if epoch ~= st.epoch then
    return 0
  end
  local back, came = min(units, own), 0
  if back > 0 then
    local idle, exactly, rest = st.step.idle(st.n, st, st.now), nil, nil
    came, exactly, rest = st.step.give_back(st.n, st, st.now, back, unused, t1, t2, t3, t4, t5, t6)
    if exactly then
      count_returned(st, idle, exactly, rest)
    end
    touch(st)
  end
  granted = min(units - back, granted)
  st.granted, st.dirty = st.granted + granted, true
  return came + granted
end

-- Microseconds for which the state says something.
local function matters_for(st)
  local idle = st.step.idle(st.n, st, st.now)
  if idle < 0 then
    idle = FOR_GOOD
  end
  idle = max(idle, st.banned - st.now)
  if st.granted > 0 then
    idle = max(idle, GRANTS_LAST)
  end
  if st.out > 0 then
    idle = max(idle, st.leases[#st.leases] - st.now)
  end
  if st.pending ~= 0 then
    for i = 2, #st.pending, 3 do
      idle = max(idle, st.pending[i] - st.now)
    end
  end
  return idle
end

local function write(st)
  local idle = matters_for(st)
  local name = KEYS[st.key]
  -- A key never used may hold less than one that is idle, while its limit is young.
  local forgettable = not st.s1 or type(st.birth) == 'table' or st.birth < 0
  if idle <= 0 and forgettable then
    if st.stored then
      redis.call('DEL', name)
    end
    return
  end
  local lasts = ceil(min(max(idle, 0), FOR_GOOD) / 1000) + 1000
  local leases = st.out > 0 and st.leases or 0
  local state
  if st.n[1] == 1 and st.s1 and st.granted == 0 and st.banned <= st.now and st.pending == 0 and leases == 0
    and st.returned_until == 0 then
    local expires = floor(now / 1000) + lasts
    state = pack(PLAIN) .. struct.pack('>BI8', 207, st.gen) .. pack(st.blob)
      .. struct.pack('>BI8BI8BI8BI8BI8', 207, st.epoch, 207, expires, 207, st.at, 207, st.s1, 207, st.s2)
  elseif st.returned_until > 0 then
    state = pack(
      FORMAT, st.gen, st.epoch, st.at, st.blob, st.granted, st.banned, st.pending, leases, st.s1, st.s2, st.s3,
      st.returned, st.returned_rest, st.returned_until
    )
  elseif st.s3 == nil then
    state = pack(FORMAT, st.gen, st.epoch, st.at, st.blob, st.granted, st.banned, st.pending, leases, st.s1, st.s2)
  else
    state = pack(FORMAT, st.gen, st.epoch, st.at, st.blob, st.granted, st.banned, st.pending, leases, st.s1, st.s2, st.s3)
  end
  redis.call('SET', name, state, 'PX', passed_in and PASSED_IN_TTL or lasts)
end
