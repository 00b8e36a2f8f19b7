-- The end of the short ways: what the keys have used is written, and the call answered. A key that lives long enough already keeps
-- its time; else it gets some more than it needs, so that the next charges find that it does.

if stood then
  local today = floor(now / 1000)
  local of, limit, at, earn, price
  for key = 1, keys do
    local units = used[key]
    if units > stood[2 * key] then
      if arg[limit_of + key] ~= of then
        of = arg[limit_of + key]
        limit = LIMIT * of - FIRST
        at, earn, price = arg[limit + 1], arg[limit + 4], arg[limit + 5]
      end
      local name, rest = names[key], stood[2 * key + 1]
      local needs = (units * price + rest) / earn / 1000
      needs = needs - needs % 1 + 1001
      if expiries[key] >= today + needs then
        call('SETRANGE', name, at, to_bytes('>I8BI8BI8', now, 207, units, 207, rest))
      else
        needs = needs + floor(needs / 4) + 4000
        local raw = raws[key]
        local epoch = raw and from_bytes('>I8', raw, #raw - 43) or now
        local level = to_bytes('>BI8BI8BI8BI8BI8', 207, epoch, 207, today + needs, 207, now, 207, units, 207, rest)
        call('SET', name, (later[key] or arg[limit]) .. level, 'PX', needs)
      end
      if passed_in then
        call('PEXPIRE', name, 3600000)
      end
    end
  end
  return answers or to_bytes('>' .. string.rep('I8', 2 * keys + 1), unpack(stood, 1, 2 * keys + 1))
end

-- The long way reads questions one by one.
if format == 4 then
  local RUN = 16
  local each, last = { unpack(arg, items + 1, items + 3 * keys) }, items + 1
  arg[last] = keys
  for key = 1, keys do
    arg[last + 1], arg[last + 2], arg[last + 3], arg[last + 4] = RUN, each[3 * key - 2], 0, 1
    arg[last + 5], arg[last + 6], arg[last + 7] = key, each[3 * key - 1], each[3 * key]
    last = last + 7
  end
end

