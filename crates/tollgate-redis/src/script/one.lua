-- The shortest way, for most that is asked: charges on one token or leaky bucket of which nothing but the level is known, all
-- of them equal, each passed or refused at once (format 3). The answer is how the key stood; what each charge is told, the
-- asking node works out from that (call.rs). It decides as bucket.lua does, in straight lines: whatever a call makes it makes
-- anew, and even a function would be something. What it meets beside such buckets it leaves to the next in line, before it
-- has written anything.
--
-- The argument is values one after the other: format, now or -1, limits, which limit each key is of, questions. A limit is
--   what a state of it begins with, where in a state its level stands, when it was born (-1 if that does not matter; of a
--   calendar the windows), since when it is so (-1: unknown); and of such a bucket earn, price, capacity, free, books
-- Such a bucket's state has the values of keys.lua in fixed places, so that its level can be read and written alone:
--   "tg2", generation, numbers (so far all keys of a limit are the same); epoch, expires (ms), at, units, credits

local format, now, passed_in = string.byte(ARGV[1]), nil, true

if format == 3 and #KEYS == 1 then
  local _, head, place, earn, price, free, questions, count, cost
  _, now, _, head, place, _, _, earn, price, _, free, _, _, questions, _, count, _, _, _, cost = cmsgpack.unpack(ARGV[1])
  if now < 0 then
    local time = redis.call('TIME')
    now, passed_in = time[1] * 1000000 + time[2], false
  end
  local name = KEYS[1]
  local raw = redis.pcall('GET', name)
  local units, rest, epoch, expires, at = 0, 0, now, 0, now
  local plain = not raw
  local begins = type(raw) == 'string' and #raw == #head + 45 and string.sub(raw, 1, #head)
  -- All but the generation, which is in the middle, has to be the same.
  if begins and (begins == head or (string.sub(begins, 14) == string.sub(head, 14) and string.sub(begins, 1, 5) == string.sub(head, 1, 5))) then
    epoch, expires, at, units, rest = struct.unpack('>xI8xI8xI8xI8xI8', raw, #head + 1)
    if begins ~= head and struct.unpack('>I8', begins, 6) > struct.unpack('>I8', head, 6) then
      head = begins
    elseif begins ~= head then
      -- Ours is the later one, and is written with the rest.
      expires = 0
    end
    local earned = (now - at) * earn
    if at <= now and units < 9007199254740992 and rest < price and epoch < 9007199254740992 then
      if earned > 2 * (units + 1) * price then
        plain, units, rest = true, 0, 0
      elseif earned < 9007199254740992 then
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
        plain, units = true, units - whole
        if units < 0 then
          units, rest = 0, 0
        end
      end
    end
  end
  local passed = (free - units - (rest > 0 and 1 or 0)) / cost
  passed = passed - passed % 1
  if passed > count then
    passed = count
  end
  local after = passed > 0 and units + passed * cost or units
  if plain and questions == 1 and (after + cost) * price + rest < 9007199254740992 then
    if passed > 0 then
      local needs, today = (after * price + rest) / earn / 1000, now / 1000
      needs, today = needs - needs % 1 + 1001, today - today % 1
      if expires >= today + needs then
        redis.call('SETRANGE', name, place, struct.pack('>I8BI8BI8', now, 207, after, 207, rest))
      else
        needs = needs + math.floor(needs / 4) + 4000
        local level = struct.pack('>BI8BI8BI8BI8BI8', 207, epoch, 207, today + needs, 207, now, 207, after, 207, rest)
        redis.call('SET', name, head .. level, 'PX', needs)
      end
      if passed_in then
        redis.call('PEXPIRE', name, 3600000)
      end
    end
    return struct.pack('>I8I8I8', now, units, rest)
  end
  -- The other short ways would come no further.
  format = questions == 1 and 1 or format
end

