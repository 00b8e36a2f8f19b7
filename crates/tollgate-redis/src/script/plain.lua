-- Token and leaky buckets of which nothing but the level is known, for calls of several keys: what one.lua does, in pieces.

local arg = { cmsgpack.unpack(ARGV[1]) }
if not now then
  now = arg[2]
  if now < 0 then
    local time = redis.call('TIME')
    now, passed_in = time[1] * 1000000 + time[2], false
  end
end

-- Once, since each would be looked up in two tables, key by key.
local floor, ceil, sub, to_bytes, from_bytes, call = math.floor, math.ceil, string.sub, struct.pack, struct.unpack, redis.call
local names = KEYS
-- Everything up to this is exact in a double.
local EXACT = 9007199254740992
-- Values of a limit in the argument; and what comes before those of the first, and before its plain ones.
local LIMIT = 9
local keys = #names
local limit_of = 3 + LIMIT * arg[3]
local is_short = format > 1 and keys <= 256

-- What all keys have; nothing where one holds something else than a text. MGET takes that for an empty place, and so those
-- are looked at again.
local function read_all()
  if keys == 1 then
    local raw = redis.pcall('GET', names[1])
    return type(raw) ~= 'table' and { raw } or nil
  end
  local raws = call('MGET', unpack(names))
  for key = 1, keys do
    if not raws[key] and call('EXISTS', names[key]) == 1 then
      return nil
    end
  end
  return raws
end

-- By key, what its state begins with, where that is of a later generation than ours.
local later = {}

-- What a key has used by now, units and credits; its epoch, and when it expires. Nothing where it is not kept so.
local function level_of(key, raw, head, earn, price)
  if not raw then
    return 0, 0, now, 0
  end
  local size = #head
  if #raw ~= size + 45 then
    return nil
  end
  local begins = sub(raw, 1, size)
  if begins ~= head and (sub(begins, 14) ~= sub(head, 14) or sub(begins, 1, 5) ~= sub(head, 1, 5)) then
    return nil
  end
  local epoch, expires, at, units, rest = from_bytes('>xI8xI8xI8xI8xI8', raw, size + 1)
  if begins ~= head and from_bytes('>I8', begins, 6) > from_bytes('>I8', head, 6) then
    later[key] = begins
  elseif begins ~= head then
    expires = 0
  end
  local earned = (now - at) * earn
  if at > now or units >= EXACT or rest >= price or epoch >= EXACT then
    return nil
  elseif earned > 2 * (units + 1) * price then
    return 0, 0, epoch, expires
  elseif earned >= EXACT then
    return nil
  end
  -- Rounded down, without a call.
  local whole = earned / price
  whole = whole - whole % 1
  rest = rest - earned + whole * price
  if rest < 0 then
    whole, rest = whole + 1, rest + price
  elseif rest >= price then
    whole, rest = whole - 1, rest - price
  end
  if whole > units then
    return 0, 0, epoch, expires
  end
  return units - whole, rest, epoch, expires
end

-- Writes what a key has used now. One that lives long enough already keeps its time; else it gets some more than it needs, so
-- that the next charges find that it does.
local function keep(key, limit, units, rest, epoch, expires)
  local name = names[key]
  local needs, today = floor((units * arg[limit + 5] + rest) / arg[limit + 4] / 1000) + 1001, floor(now / 1000)
  if expires >= today + needs then
    call('SETRANGE', name, arg[limit + 1], to_bytes('>I8BI8BI8', now, 207, units, 207, rest))
  else
    needs = needs + floor(needs / 4) + 4000
    local level = to_bytes('>BI8BI8BI8BI8BI8', 207, epoch, 207, today + needs, 207, now, 207, units, 207, rest)
    call('SET', name, (later[key] or arg[limit]) .. level, 'PX', needs)
  end
  if passed_in then
    call('PEXPIRE', name, 3600000)
  end
end

