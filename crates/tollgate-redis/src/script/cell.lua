-- A cell: until when it owes, in microseconds and parts of one. The node says what a unit costs and how much may be owed, and
-- works out what is told; here is only what has to happen at once.
--
--   KEYS[1]   the cell: 'c1 <microseconds> <parts> <parts in one>'
--   ARGV[1]   now, or - for the server's own; tolerance, its parts; price, its parts; parts in one; how many: 0 only looks
--   answers   whether it passed, what was owed before and its parts, now; or what is wrong
local passed_in, tolerance, tolerance_part, price, price_part, of, quantity =
  string.match(ARGV[1], '^(%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+)$')
tolerance, tolerance_part = tonumber(tolerance), tonumber(tolerance_part)
price, price_part, quantity = tonumber(price), tonumber(price_part), tonumber(quantity)
local whole = tonumber(of)

local now = tonumber(passed_in)
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local due, part = now, 0
local stored = redis.pcall('GET', KEYS[1])
if stored then
  local stored_due, stored_part, stored_of
  if type(stored) == 'string' then
    stored_due, stored_part, stored_of = string.match(stored, '^c1 (%d+) (%d+) (%d+)$')
    if not stored_due and string.match(stored, '^c%d+ ') then return 'new' end
  end
  if not stored_due then
    redis.call('DEL', KEYS[1])
    return 'damaged'
  end
  stored_due, stored_part = tonumber(stored_due), tonumber(stored_part)
  if stored_of ~= of and stored_part > 0 then
    stored_due, stored_part = stored_due + 1, 0
  end
  if stored_due >= now then due, part = stored_due, stored_part end
end
local owed, owed_part = due - now, part

local passes = 1
if quantity > 0 then
  due, part = due + price, part + price_part
  if part >= whole then due, part = due + 1, part - whole end
  if due - now > tolerance or (due - now == tolerance and part > tolerance_part) then passes = 0 end
elseif quantity < 0 then
  due, part = due - price, part - price_part
  if part < 0 then due, part = due - 1, part + whole end
end

if passes == 1 and quantity ~= 0 and (quantity > 0 or stored) then
  if due < now or (due == now and part == 0) then
    redis.call('DEL', KEYS[1])
  else
    -- Time until idle, rounded up, and a second; with a time that is passed in, an hour.
    local lives = math.ceil((due - now + 1) / 1000) + 1000
    if passed_in ~= '-' then lives = 3600000 end
    redis.call('SET', KEYS[1], string.format('c1 %.0f %.0f %s', due, part, of), 'PX', string.format('%.0f', lives))
  end
end
return { passes, owed, owed_part, now }
