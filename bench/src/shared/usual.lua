-- A token bucket in two keys: how many tokens there were, and when that was, in whole seconds of the caller's clock.
local rate, capacity = tonumber(ARGV[1]), tonumber(ARGV[2])
local now, wanted = tonumber(ARGV[3]), tonumber(ARGV[4])

local tokens = tonumber(redis.call('get', KEYS[1])) or capacity
local since = tonumber(redis.call('get', KEYS[2])) or 0
tokens = math.min(capacity, tokens + math.max(0, now - since) * rate)

local allowed = 0
if tokens >= wanted then
  allowed, tokens = 1, tokens - wanted
end

local life = math.floor(2 * capacity / rate)
redis.call('setex', KEYS[1], life, tokens)
redis.call('setex', KEYS[2], life, now)
return { allowed, tokens }
