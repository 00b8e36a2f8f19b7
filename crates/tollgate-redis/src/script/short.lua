-- The short way, for nearly all that is asked: checks on token and leaky buckets of which nothing but the level is known. The
-- asking node says that they are that (format 2); what is stored shows whether it is so. It decides as decide.lua does with
-- bucket.lua, on plain numbers, and makes next to nothing on the way, since whatever a call makes it makes anew. Where it
-- meets anything else it gives up before it has written anything, and the long way begins from here.
--
-- The argument is values one after the other: format, now or -1, limits, which limit each key is of, questions. A limit is its numbers, its
-- generation, when it was born (-1 if that does not matter; of a calendar the windows) and since when it is so (-1: unknown).

local arg = { cmsgpack.unpack(ARGV[1]) }
local now, passed_in = arg[2], true
if now < 0 then
  local time = redis.call('TIME')
  now, passed_in = time[1] * 1000000 + time[2], false
end

local answers
if arg[1] == 2 and #KEYS <= 256 then
  local floor, ceil, spread = math.floor, math.ceil, unpack
  local pack, unpack = cmsgpack.pack, cmsgpack.unpack
  local EXACT, RUN, FOLDED = 9007199254740992, 16, -4
  local limit_of = 3 + 4 * arg[3]
  local count, question = #KEYS, limit_of + #KEYS + 2
  -- By key: units and credits used, the units before, the epoch, the limit's numbers.
  -- Room for one is made at once.
  local us, rs, befores, epochs, ns = { 0 }, { 0 }, { 0 }, { 0 }, { 0 }
  local plain = true

  local raws
  if count == 1 then
    -- What is no text is an error to GET; MGET calls it nothing, so there it is looked for.
    raws = { redis.pcall('GET', KEYS[1]) }
  else
    raws = redis.call('MGET', spread(KEYS))
  end
  local last_blob, last_n
  for key = 1, count do
    local at = 4 * arg[limit_of + key]
    local blob, raw = arg[at], raws[key]
    if blob ~= last_blob then
      last_blob, last_n = blob, { unpack(blob) }
    end
    local n, u, r, epoch = last_n, 0, 0, now
    if raw then
      local ok, format, gen, began, when, numbers, granted, banned, pending, leases, s1, s2
      if type(raw) == 'string' then
        ok, format, gen, began, when, numbers, granted, banned, pending, leases, s1, s2 = pcall(unpack, raw)
      end
      if not ok or format ~= 'tg1' or numbers ~= blob or gen ~= arg[at + 1] or granted ~= 0 or banned ~= 0
        or pending ~= 0 or leases ~= 0 or type(s1) ~= 'number' or type(s2) ~= 'number' or type(when) ~= 'number'
        or not (s1 >= 0 and s1 < EXACT and s2 >= 0 and s2 < n[4] and when <= now and when >= 0) then
        plain = false
        break
      end
      local price, earned = n[4], (now - when) * n[3]
      epoch = began
      if earned <= 2 * (s1 + 1) * price then
        if earned >= EXACT then
          plain = false
          break
        end
        local whole = floor(earned / price)
        r = s2 - (earned - whole * price)
        if r < 0 then
          whole, r = whole + 1, r + price
        elseif r >= price then
          whole, r = whole - 1, r - price
        end
        u = s1 - whole
        if u < 0 then
          u, r = 0, 0
        end
      end
    elseif count > 1 and redis.call('EXISTS', KEYS[key]) == 1 then
      plain = false
      break
    end
    us[key], rs[key], befores[key], epochs[key], ns[key] = u, r, u, epoch, n
  end

  local list, last = { now, 0, 0, 0, 0, 0 }, 1
  for _ = 1, plain and arg[question - 1] or 0 do
    local run, first = 1, question + 3
    if arg[question] == RUN then
      run, first = arg[question + 1], question + 4
    end
    local parts = arg[first - 1]
    if run > 1 then
      -- Equal charges on one bucket, pass or refuse: so many pass, and all the others are told the same.
      local key, cost = arg[first], arg[first + 1]
      local n, u, r = ns[key], us[key], rs[key]
      local passed = floor((n[6] - u - (r > 0 and 1 or 0)) / cost)
      if passed < 0 then
        passed = 0
      elseif passed > run then
        passed = run
      end
      local after = u + passed * cost
      local over = (after + cost - n[6]) * n[4] + r
      local level = after * n[4] + r
      if over >= EXACT or level >= EXACT then
        plain = false
        break
      end
      local left = n[5] - after - (r > 0 and 1 or 0)
      list[last + 1], list[last + 2], list[last + 3], list[last + 4] = FOLDED, passed, u, r
      list[last + 5], list[last + 6] = n[5], left > 0 and left or 0
      list[last + 7], list[last + 8] = passed < run and ceil(over / n[3]) or 0, ceil(level / n[3])
      last, us[key] = last + 8, after
    else
      local refused = false
      for part = first, first + 3 * parts - 1, 3 do
        local key, cost, up_to = arg[part], arg[part + 1], arg[part + 2]
        local n, u, r = ns[key], us[key], rs[key]
        local price, capacity = n[4], n[5]
        local told, time, after = 0, 0, u + cost
        local over = after - n[6]
        if cost > capacity then
          told, after = 4, u
        elseif cost > 0 and (over > 0 or (over == 0 and r > 0)) then
          local due = over * price + r
          -- What does not fit at all is left to the long way, and so is what would need more than 53 bits.
          if due >= EXACT or (n[7] == 0 and (after > capacity or (after == capacity and r > 0))) or after >= EXACT / 2 then
            plain = false
            break
          end
          local wait = ceil(due / n[3])
          if wait <= up_to or (up_to < 0 and n[7] == 0) then
            told, time = 1, wait
          else
            told, time, after = 2, wait - (up_to > 0 and up_to or 0), u
          end
        end
        local level = after * price + r
        if level >= EXACT or (told > 1 and parts > 1) then
          -- A refused set shows what is there untouched.
          plain = false
          break
        end
        local left = capacity - after - (r > 0 and 1 or 0)
        list[last + 1], list[last + 2], list[last + 3] = told, time, capacity
        list[last + 4], list[last + 5] = left > 0 and left or 0, ceil(level / n[3])
        last, us[key] = last + 5, after
      end
    end
    if not plain then
      break
    end
    question = first + 3 * parts
  end

  if plain then
    for key = 1, count do
      local u = us[key]
      if u ~= befores[key] then
        local n, r, at = ns[key], rs[key], 4 * arg[limit_of + key]
        local ttl = passed_in and 3600000 or ceil(ceil((u * n[4] + r) / n[3]) / 1000) + 1000
        redis.call('SET', KEYS[key], pack('tg1', arg[at + 1], epochs[key], now, arg[at], 0, 0, 0, 0, u, r), 'PX', ttl)
      end
    end
    answers = list
  end
end
if answers then
  return answers
end

