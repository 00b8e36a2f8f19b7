-- Whole numbers in doubles. Everything up to 2^53 is exact; products above that are never formed, but divided as
-- they grow. What is divided here is what crates/tollgate/src/step divides in 128 bits.

local max, min, huge = math.max, math.min, math.huge
-- No time is told, and no turn booked, beyond this many microseconds (142 years) or units.
local FARTHEST = EXACT / 2
local MOST_UNITS = 4294967295

-- a * b / c: the whole and the rest, whatever the size of a * b. All of them are below 2^52.
local muldiv
function muldiv(a, b, c)
  local product = a * b
  -- A number that is too large by itself comes out of a damaged state: any answer will do, as long as there is one.
  if product < EXACT or b == 1 then
    local whole = floor(product / c)
    local rest = product - whole * c
    -- The quotient was rounded to a double, across a whole number now and then.
    if rest < 0 then
      return whole - 1, rest + c
    elseif rest >= c then
      return whole + 1, rest - c
    end
    return whole, rest
  end
  local times, part = muldiv(a, 1, c)
  local whole, rest, bit = 0, 0, 1
  while bit * 2 <= b do
    bit = bit * 2
  end
  local left = b
  while bit >= 1 do
    whole, rest = whole * 2, rest * 2
    if rest >= c then
      whole, rest = whole + 1, rest - c
    end
    if left >= bit then
      left = left - bit
      if rest >= c - part then
        whole, rest = whole + 1, rest - (c - part)
      else
        rest = rest + part
      end
    end
    bit = bit / 2
  end
  return times * b + whole, rest
end

-- a / b, rounded up.
local function div_up(a, b)
  local whole = floor(a / b)
  if whole * b < a then
    return whole + 1
  end
  return whole
end

-- What a charge is told.
local ALLOW, WAIT, DENY, WHEN_RELEASED, NEVER = 0, 1, 2, 3, 4

-- The steps, one for each kind of limit, made when a call first needs them. A step has
--   ask(n, st, now, cost, up_to)   what a charge is told, how long, what is left, until reset; then the state that follows
--   commit(n, st, now, cost, permit)   where the state that follows is not a matter of three values
--   trace(n, st, now, cost, permit, ...)   what a charge takes, for give_back; asked before the charge is made
--   give_back(n, st, now, units, unused, ...)   up to so many units of it, as far as they are still there. Where it was not
--     used, only what no later charge stands on: its cost less what was charged after it. Returns how many units came back;
--     and where somebody charged later, who must be counted, how much exactly: units and credits, or units rounded up. Where
--     nobody did, it is as if the charge had cost less.
--   refund, owe, idle, convert   as in crates/tollgate/src/step
-- on the limit's numbers n and the key's state st: s1, s2, s3, and at, when they were so. A key never used has no s1.
local steps = {}

-- Counts the units that came back to a bucket: st.returned units and st.returned_rest credits of a further one. A charge
-- remembers the count that it finds. When it is cancelled, what was charged after it is
--   level now + (returned now - returned then) - level the charge left
-- since the level alone does not show what later charges have returned themselves.
--
-- The count is dropped when no charge needs it any more: the bucket is idle, and time has paid for all that was charged before
-- the last return (st.returned_until; zero where nothing is counted). idle is how long that would have taken before this return.
local function count_returned(st, idle, units, rest)
  if units < 0 or (units == 0 and rest == 0) then
    return
  end
  local sum, part = st.returned + units, st.returned_rest + rest
  if rest > 0 and st.returned_rest >= st.n[4] - rest then
    sum, part = sum + 1, st.returned_rest - (st.n[4] - rest)
  end
  st.returned, st.returned_rest = min(sum, FARTHEST), part
  st.returned_until = max(st.returned_until, min(st.now + idle, EXACT - 1))
end

-- Whole units that came back since a charge found so many counted. A count at its end cannot tell, so it says too many.
local function returned_since(st, counted)
  return st.returned < FARTHEST and max(st.returned - (counted or 0), 0) or FARTHEST
end

-- Why a charge was not used: it was cancelled, or its set was held and not confirmed. A held charge that passed at once returns
-- all that is still there as long as nobody is booked ahead: then no later charge stands on it.
local CANCELLED, HELD = 1, 2

-- Leases are a flat list of id, units and until when, whose time is up first standing first; out is the sum of the units.
-- Takes one off the list.
local function take_lease(st, place)
  local leases = st.leases
  local id, units, till = table.remove(leases, place), table.remove(leases, place), table.remove(leases, place)
  st.out = st.out - units
  return id, units, till
end

-- What a lease that is over did is counted already.
local function lapse(n, st, now)
  local leases = st.leases
  while leases[3] and leases[3] <= now do
    take_lease(st, 1)
  end
end

local made = {}

local function stepped(kind)
  local step = made[kind]
  if not step then
    step = steps[kind]()
    made[kind] = step
  end
  return step
end
