-- The questions, one after the other, on states that are read once and written once.

local answered = 1
answers = { now }
local function answer(value)
  answered = answered + 1
  answers[answered] = value
end

-- How one part of a set stands, in these lists by its place in the set.
local sts, tolds, times, lefts, resets, bans = {}, {}, {}, {}, {}, {}
local owns, grants, next1, next2, next3 = {}, {}, {}, {}, {}

local function tell(part, cost, up_to)
  local st = sts[part]
  local n, step, at = st.n, st.step, st.now
  local granted = min(cost, st.granted)
  local own = cost - granted
  local told, time, left, reset, s1, s2, s3 = step.ask(n, st, at, own, up_to)
  local _
  local ban = 0
  if own > MOST_UNITS then
    -- Beyond 32 bits no limit gives that much.
    told = NEVER
    _, _, left, reset = step.ask(n, st, at, 0, 0)
  end
  if st.banned > at and cost > 0 then
    local lasts = st.banned - at
    if told < DENY or (told == DENY and time <= lasts) then
      told, time, ban = DENY, lasts, 1
      _, _, left, reset = step.ask(n, st, at, 0, 0)
    end
    -- A ban shows what is there; nothing of it would be spent.
    granted = 0
  end
  left = left + st.granted - (told < DENY and granted or 0)
  tolds[part], times[part], lefts[part], resets[part], bans[part] = told, time, left, reset, ban
  owns[part], grants[part], next1[part], next2[part], next3[part] = own, granted, s1, s2, s3
  return told
end

local function answer_part(part)
  local st = sts[part]
  answer(tolds[part] + 8 * bans[part] + ((st.step.leave and owns[part] > 0) and 16 or 0))
  answer(min(times[part], FARTHEST))
  answer(min(st.step.limit(st.n), MOST_UNITS))
  answer(min(lefts[part], MOST_UNITS))
  answer(min(resets[part], FARTHEST))
end

-- Shows a part untouched, with the verdict it would have had.
local function untouch(part)
  local st, _ = sts[part], nil
  _, _, lefts[part], resets[part] = st.step.ask(st.n, st, st.now, 0, 0)
  lefts[part] = lefts[part] + st.granted
end

-- Whether a state could be read; where not, the question is answered with that, and the key is healed.
local function is_sound(st)
  local flaw = st.flaw
  if not flaw then
    return true
  end
  answer(flaw)
  answer(st.key)
  if flaw == -1 then
    begin(st)
    st.flaw, st.dirty = nil, true
  end
  return false
end

-- What a charge is about to take, opaque to whoever gives it back.
local function taken(part, permit)
  local st = sts[part]
  if owns[part] == 0 then
    return pack(st.epoch, grants[part], 0)
  end
  local trace = st.step.trace
  return pack(
    st.epoch,
    grants[part],
    owns[part],
    trace(st.n, st, st.now, owns[part], permit, next1[part], next2[part], next3[part])
  )
end

local function make(part, permit, life)
  local st, own = sts[part], owns[part]
  if own > 0 then
    if st.step.commit then
      st.step.commit(st.n, st, st.now, own, permit, life)
    else
      st.s1, st.s2, st.s3 = next1[part], next2[part], next3[part]
    end
    touch(st)
  end
  if grants[part] > 0 then
    st.granted, st.dirty = st.granted - grants[part], true
  end
end

local CHECK, PEEK, RESERVE, GIVE_BACK, REFUND, RESET, GRANT, BAN = 1, 2, 3, 4, 5, 6, 7, 8
local LEAVE, RENEW, OWE, HOLD, CONFIRM, ABANDON, LEASE, RUN, TAKE_BACK = 9, 10, 11, 12, 13, 14, 15, 16, 17

-- All parts are charged, or none is.
local function decide(op)
  local permit = take()
  local id, life
  if op == HOLD then
    id, life = take(), take()
  end
  local parts = take()
  local from = place
  place = place + 3 * parts
  for part = 1, parts do
    local st = state_of(arg[from + 3 * part - 3])
    if not is_sound(st) then
      return
    end
    sts[part] = st
  end
  local refused = false
  for part = 1, parts do
    if tell(part, arg[from + 3 * part - 2], arg[from + 3 * part - 1]) >= DENY then
      refused = true
    end
  end
  for part = 1, parts do
    if refused and sts[part].turned and op ~= PEEK then
      -- A refusal charges nothing; but newer numbers hold from the first who comes with them, or those who come with
      -- older ones could keep the bucket too empty for anybody else to pass, and go on by theirs.
      sts[part].dirty = true
    end
    if refused and tolds[part] < DENY then
      untouch(part)
    end
    answer_part(part)
    if op == RESERVE or op == HOLD then
      local trace = refused and '' or taken(part, permit)
      answer(trace)
      if op == HOLD and not refused then
        local st = sts[part]
        local pending = st.pending == 0 and {} or st.pending
        local last = #pending
        pending[last + 1], pending[last + 2], pending[last + 3] = id, st.now + life, trace
        st.pending, st.dirty = pending, true
      end
    end
    if not refused and op ~= PEEK then
      make(part, permit, life)
    end
  end
end

-- So many equal checks.
local function decide_again_and_again()
  local count, from = take(), place
  for _ = 1, count do
    place = from
    decide(CHECK)
  end
end

-- One state, for what concerns a single key.
local function sound_state()
  local st = state_of(take())
  return is_sound(st) and st or nil
end

-- Ends what a set held here: for good, or by giving it back.
local function end_hold(st, id, confirmed)
  local pending, kept, found = st.pending, {}, false
  for i = 1, pending == 0 and 0 or #pending, 3 do
    if pending[i] == id then
      found = true
      local _, _, own, permit = unpack(pending[i + 2])
      if not confirmed then
        give_back(st, pending[i + 2], huge, HELD)
      elseif own > 0 and st.step.renew then
        st.step.renew(st.n, st, st.now, permit)
      end
    else
      kept[#kept + 1], kept[#kept + 2], kept[#kept + 3] = pending[i], pending[i + 1], pending[i + 2]
    end
  end
  if found then
    st.pending, st.dirty = #kept > 0 and kept or 0, true
  end
  return found
end

local verbs = {}
verbs[CHECK], verbs[PEEK], verbs[RESERVE], verbs[HOLD] = decide, decide, decide, decide
verbs[RUN] = decide_again_and_again

-- Answers how many units of each part came back.
verbs[GIVE_BACK] = function()
  local unused = take() == 1 and CANCELLED
  for _ = 1, take() do
    local st, trace, units = state_of(take()), take(), take()
    -- To a state that cannot be read there is nothing to give back; the next charge will say so.
    answer(st.flaw and 0 or give_back(st, trace, units, unused))
  end
end

-- What was charged at that time and nobody heard of, as far as it is surely still there.
verbs[TAKE_BACK] = function()
  local permit, since = take(), take()
  for _ = 1, take() do
    local st, units = state_of(take()), take()
    if not st.flaw and st.s1 and st.epoch <= since and units > 0 and st.step.take_back then
      st.step.take_back(st.n, st, st.now, units, since, permit)
      touch(st)
    end
  end
  answer(0)
end

verbs[REFUND] = function()
  local st, units = sound_state(), take()
  if st then
    if st.s1 then
      st.step.refund(st.n, st, st.now, units)
      touch(st)
    end
    answer(0)
  end
end

verbs[OWE] = function()
  local st, units = sound_state(), take()
  if st then
    st.step.owe(st.n, st, st.now, units)
    touch(st)
    answer(0)
  end
end

verbs[RESET] = function()
  local st = state_of(take())
  -- What cannot be read is forgotten too, but not what a later version wrote.
  if st.flaw == -2 then
    is_sound(st)
    return
  end
  local granted, banned, leases, out, place = st.granted, st.banned, st.leases, st.out, st.s1
  local epoch = st.epoch
  begin(st)
  st.granted, st.banned, st.epoch, st.flaw, st.dirty = granted, banned, max(now, epoch + 1), nil, true
  if out > 0 then
    -- What is out may still be used.
    st.leases, st.out = leases, out
    st.step.reset(st.n, st, st.now, place)
  end
  answer(0)
end

verbs[GRANT] = function()
  local st, units = sound_state(), take()
  if st then
    st.granted, st.dirty = min(st.granted + units, MOST_UNITS), true
    answer(0)
  end
end

verbs[BAN] = function()
  local st, lasting = sound_state(), take()
  if st then
    st.banned, st.dirty = lasting > 0 and st.now + lasting or 0, true
    answer(0)
  end
end

-- How many units came back, or how many of the parts that hold slots still did.
local function each_holder(op)
  local permit, count = take(), 0
  for _ = 1, take() do
    local st = state_of(take())
    if not st.flaw and st.step.leave then
      local units = op == LEAVE and st.step.leave(st.n, st, st.now, permit) or st.step.renew(st.n, st, st.now, permit)
      if units > 0 then
        touch(st)
      end
      count = count + (op == LEAVE and units or min(units, 1))
    end
  end
  answer(count)
end

verbs[LEAVE], verbs[RENEW] = each_holder, each_holder

local function holds(st, id)
  for i = 1, st.pending == 0 and 0 or #st.pending, 3 do
    if st.pending[i] == id then
      return true
    end
  end
  return false
end

-- All or none: what one of them has lost (a reset, an eviction) the others give back.
verbs[CONFIRM] = function()
  local id, held, is_whole = take(), {}, true
  for part = 1, take() do
    local st = state_of(take())
    held[part] = st
    is_whole = is_whole and not st.flaw and holds(st, id)
  end
  for _, st in ipairs(held) do
    if not st.flaw then
      end_hold(st, id, is_whole)
    end
  end
  answer(is_whole and 1 or 0)
end

-- Answers how each part stands once it is rid of the hold.
verbs[ABANDON] = function()
  local id = take()
  for _ = 1, take() do
    local st = state_of(take())
    if st.flaw == -1 then
      -- What was held there is gone with the rest.
      begin(st)
      st.flaw, st.dirty = nil, true
    end
    end_hold(st, id, false)
    sts[1] = st
    tell(1, 0, 0)
    answer_part(1)
  end
end

-- A node's report on its leases, a question, and a wish for new ones: what was leased is settled first, whatever is decided
-- then, and where the set passes each part is lent up to a share of what is left.
verbs[LEASE] = function()
  local shares, life, parts = take(), take(), take()
  local wishes, sound = {}, true
  for part = 1, parts do
    local st, cost = state_of(take()), take()
    sts[part], owns[part] = st, cost
    sound = sound and not st.flaw
    for _ = 1, take() do
      local id, used = take(), take()
      for i = 1, st.out > 0 and #st.leases or 0, 3 do
        if st.leases[i] == id then
          local _, units = take_lease(st, i)
          used = min(used, units)
          st.step.settle(st.n, st, st.now, units - used, used)
          touch(st)
          break
        end
      end
    end
    wishes[part] = { id = take(), units = take() }
  end
  if not sound then
    for part = 1, parts do
      if not is_sound(sts[part]) then
        return
      end
    end
  end
  local refused = false
  for part = 1, parts do
    if tell(part, owns[part], -1) >= DENY then
      refused = true
    end
  end
  for part = 1, parts do
    local st, wish, lent, till = sts[part], wishes[part], 0, 0
    st.dirty = st.dirty or (refused and st.turned)
    if refused and tolds[part] < DENY then
      untouch(part)
    elseif not refused then
      make(part, 0)
      local most = min(wish.units, floor(lefts[part] / shares))
      -- What an operator gave or took by hand is decided here.
      if most >= 1 and st.step.lease and st.granted == 0 and st.banned <= st.now and (st.leases == 0 or #st.leases < 3 * shares) then
        till = st.step.lease(st.n, st, st.now, most, life) or 0
      end
      if till > st.now then
        lent = most
        if st.leases == 0 then
          st.leases = {}
        end
        local place = #st.leases + 1
        while place > 1 and st.leases[place - 1] > till do
          place = place - 3
        end
        table.insert(st.leases, place, till)
        table.insert(st.leases, place, lent)
        table.insert(st.leases, place, wish.id)
        st.out, lefts[part] = st.out + lent, lefts[part] - lent
        touch(st)
      end
    end
    answer_part(part)
    answer(lent)
    answer(lent > 0 and till - st.now or 0)
  end
end

for _ = 1, take() do
  local op = take()
  verbs[op](op)
end

for _, st in pairs(states) do
  if st.dirty then
    write(st)
  end
end
return answers
