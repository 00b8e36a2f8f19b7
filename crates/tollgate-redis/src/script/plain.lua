-- Token and leaky buckets of which nothing but the level is known, for whatever one.lua left: how all keys of a call stand. In
-- straight lines too; each.lua, runs.lua and sets.lua decide by it, and keep.lua writes what follows.

local arg = { cmsgpack.unpack(ARGV[1]) }
if not now then
  now = arg[2]
  if now < 0 then
    local time = redis.call('TIME')
    now, passed_in = time[1] * 1000000 + time[2], false
  end
end

-- Once, since each would be looked up in two tables, key by key.
local floor, ceil, to_bytes, from_bytes, call = math.floor, math.ceil, struct.pack, struct.unpack, redis.call
local names = KEYS
-- Everything up to this is exact in a double.
local EXACT = 9007199254740992
-- Values of a limit in the argument; the first of the nth stands FIRST before n times as many.
local LIMIT = 9
local FIRST = 5
local keys = #names
local limit_of = 3 + LIMIT * arg[3]

-- The time, and by key its units and credits used by now; what it will have used, in units; when it expires; and what its state
-- begins with, where that is of a later generation than ours. Nothing where one of them is not kept so. The lists are made in the
-- size that is needed, whatever is in them (the argument has three values a key at least): one that grows is made anew.
local stood, used, expiries, raws
local later = {}

if format > 1 and keys <= 256 then
  if keys == 1 then
    local raw = redis.pcall('GET', names[1])
    raws = type(raw) ~= 'table' and { raw }
  else
    raws = call('MGET', unpack(names))
  end
  if raws then
    stood, used, expiries = { unpack(arg, 1, 2 * keys + 1) }, { unpack(arg, 1, keys) }, { unpack(arg, 1, keys) }
    stood[1] = now
  end
  local of, head, size, shape, earn, price
  for key = 1, raws and keys or 0 do
    if arg[limit_of + key] ~= of then
      of = arg[limit_of + key]
      local limit = LIMIT * of - FIRST
      head, earn, price = arg[limit], arg[limit + 4], arg[limit + 5]
      if #head ~= size then
        size = #head
        shape = '>c' .. size .. 'xI8xI8xI8xI8xI8'
      end
    end
    local raw, units, rest, expires = raws[key], 0, 0, 0
    if raw then
      if #raw ~= size + 45 then
        stood = nil
        break
      end
      local begins, epoch, at
      begins, epoch, expires, at, units, rest = from_bytes(shape, raw)
      if begins ~= head then
        -- All but the generation, which is in the middle, has to be the same.
        local sub = string.sub
        if sub(begins, 14) ~= sub(head, 14) or sub(begins, 1, 5) ~= sub(head, 1, 5) then
          stood = nil
          break
        elseif from_bytes('>I8', begins, 6) > from_bytes('>I8', head, 6) then
          later[key] = begins
        else
          -- Ours is the later one, and is written with the rest.
          expires = 0
        end
      end
      local earned = (now - at) * earn
      if at > now or units >= EXACT or rest >= price or epoch >= EXACT then
        stood = nil
        break
      elseif earned > 2 * (units + 1) * price then
        units, rest = 0, 0
      elseif earned < EXACT then
        -- Rounded down, without a call.
        local whole = earned / price
        whole = whole - whole % 1
        rest = rest - earned + whole * price
        -- The quotient was rounded to a double, across a whole number now and then.
        if rest < 0 then
          whole, rest = whole + 1, rest + price
        elseif rest >= price then
          whole, rest = whole - 1, rest - price
        end
        units = units - whole
        if units < 0 then
          units, rest = 0, 0
        end
      else
        stood = nil
        break
      end
    elseif keys > 1 and call('EXISTS', names[key]) == 1 then
      -- It holds something else than a text, which MGET takes for an empty place.
      stood = nil
      break
    end
    stood[2 * key], stood[2 * key + 1], used[key], expiries[key] = units, rest, units, expires
  end
end

