-- A short way, for charges on plain buckets that may wait (format 2), and all that goes with them. It decides as decide.lua does with
-- bucket.lua, and answers as that does.

local answers
if stood and format == 2 then
  local RUN = 16
  local question = items + 2
  local last = 1
  answers = { now }
  for _ = 1, arg[question - 1] do
    local again, first = 1, question + 3
    if arg[question] == RUN then
      again, first = arg[question + 1], question + 4
    end
    local parts = arg[first - 1]
    for _ = 1, again do
      for part = first, first + 3 * parts - 1, 3 do
        local key, cost, up_to = arg[part], arg[part + 1], arg[part + 2]
        local limit, u, r = LIMIT * arg[limit_of + key] - FIRST, used[key], stood[2 * key + 1]
        local earn, price, capacity, books = arg[limit + 4], arg[limit + 5], arg[limit + 6], arg[limit + 8]
        local told, time, after = 0, 0, u + cost
        local over = after - arg[limit + 7]
        if cost > capacity then
          told, after = 4, u
        elseif cost > 0 and (over > 0 or (over == 0 and r > 0)) then
          local due = over * price + r
          -- What does not fit at all is left to the long way, and so is what would need more than 53 bits.
          if due >= EXACT or (books == 0 and (after > capacity or (after == capacity and r > 0))) or after >= EXACT / 2 then
            stood = nil
            break
          end
          local wait = ceil(due / earn)
          if wait <= up_to or (up_to < 0 and books == 0) then
            told, time = 1, wait
          else
            told, time, after = 2, wait - (up_to > 0 and up_to or 0), u
          end
        end
        local level = after * price + r
        if level >= EXACT or (told > 1 and parts > 1) then
          -- A refused set shows what is there untouched.
          stood = nil
          break
        end
        local left = capacity - after - (r > 0 and 1 or 0)
        answers[last + 1], answers[last + 2], answers[last + 3] = told, time, capacity
        answers[last + 4], answers[last + 5] = left > 0 and left or 0, ceil(level / earn)
        last, used[key] = last + 5, after
      end
      if not stood then
        break
      end
    end
    if not stood then
      break
    end
    question = first + 3 * parts
  end
end

