-- A short way, for sets of charges on plain buckets, each passed or refused at once (format 3). Equal sets are one question. As in
-- one.lua the answer is how every key stood.

if is_short and format == 3 then
  local raws = read_all()
  -- How the keys stood, each its units and credits; and what is to be written, each its units, epoch and expiry. Lists of the
  -- size that is needed, whatever is in them: the argument has four values a key at least, and a list that grows is made anew.
  local list, kept = { unpack(arg, 1, 2 * keys + 1) }, { unpack(arg, 1, 3 * keys + 2) }
  list[1] = now
  for key = 1, raws and keys or 0 do
    local limit = LIMIT * arg[limit_of + key] - 5
    local units, rest, epoch, expires = level_of(key, raws[key], arg[limit], arg[limit + 4], arg[limit + 5])
    if not units then
      raws = nil
      break
    end
    list[2 * key], list[2 * key + 1] = units, rest
    kept[3 * key], kept[3 * key + 1], kept[3 * key + 2] = units, epoch, expires
  end

  local question = limit_of + keys + 2
  for _ = 1, raws and arg[question - 1] or 0 do
    local passed, first = arg[question + 1], question + 4
    question = first + 3 * arg[first - 1]
    for part = first, question - 1, 3 do
      local key = arg[part]
      local free = arg[LIMIT * arg[limit_of + key] + 2]
      local room = (free - kept[3 * key] - (list[2 * key + 1] > 0 and 1 or 0)) / arg[part + 1]
      room = room - room % 1
      if room < passed then
        passed = room > 0 and room or 0
      end
    end
    for part = first, question - 1, 3 do
      local key, cost = arg[part], arg[part + 1]
      local after = kept[3 * key] + passed * cost
      -- What needs more than 53 bits, told or kept, is left to the long way.
      if (after + cost) * arg[LIMIT * arg[limit_of + key]] + list[2 * key + 1] >= EXACT then
        raws = nil
      end
      kept[3 * key] = after
    end
  end

  if raws then
    for key = 1, keys do
      local units = kept[3 * key]
      if units > list[2 * key] then
        local limit, rest = LIMIT * arg[limit_of + key] - 5, list[2 * key + 1]
        keep(key, limit, units, rest, kept[3 * key + 1], kept[3 * key + 2])
      end
    end
    return to_bytes(string.rep('>I8', 2 * keys + 1), unpack(list, 1, 2 * keys + 1))
  end
end

