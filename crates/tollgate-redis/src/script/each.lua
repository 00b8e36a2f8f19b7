-- A short way, for charges on several plain buckets, each bucket's all equal, and each charge passed or refused at once (format 4):
-- what many different callers bring at the same time. A question is how many charges there are of the key in its place, what one
-- of them costs and how long it may wait, which is not at all. The answer is how every key stood, as in one.lua.

local items = limit_of + keys
if stood and format == 4 then
  local of, price, free
  for key = 1, keys do
    if arg[limit_of + key] ~= of then
      of = arg[limit_of + key]
      local limit = LIMIT * of - FIRST
      price, free = arg[limit + 5], arg[limit + 7]
    end
    local count, cost, units, rest = arg[items + 3 * key - 2], arg[items + 3 * key - 1], used[key], stood[2 * key + 1]
    local passed = (free - units - (rest > 0 and 1 or 0)) / cost
    passed = passed - passed % 1
    if passed > count then
      passed = count
    end
    if passed > 0 then
      units = units + passed * cost
      used[key] = units
    end
    -- What needs more than 53 bits, told or kept, is left to the long way.
    if (units + cost) * price + rest >= EXACT then
      stood = nil
      break
    end
  end
end

