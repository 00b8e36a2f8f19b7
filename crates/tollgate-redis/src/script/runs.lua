-- A short way, for sets of charges on plain buckets, each passed or refused at once (format 3). Equal sets are one question. The answer
-- is how every key stood, as in one.lua.

if stood and format == 3 then
  local question = items + 2
  for _ = 1, arg[question - 1] do
    local passed, first = arg[question + 1], question + 4
    question = first + 3 * arg[first - 1]
    for part = first, question - 1, 3 do
      local key = arg[part]
      local limit = LIMIT * arg[limit_of + key] - FIRST
      local room = (arg[limit + 7] - used[key] - (stood[2 * key + 1] > 0 and 1 or 0)) / arg[part + 1]
      room = room - room % 1
      if room < passed then
        passed = room > 0 and room or 0
      end
    end
    for part = first, question - 1, 3 do
      local key, cost = arg[part], arg[part + 1]
      local limit = LIMIT * arg[limit_of + key] - FIRST
      local units = used[key] + passed * cost
      used[key] = units
      -- What needs more than 53 bits, told or kept, is left to the long way.
      if (units + cost) * arg[limit + 5] + stood[2 * key + 1] >= EXACT then
        stood = nil
        break
      end
    end
    if not stood then
      break
    end
  end
end

