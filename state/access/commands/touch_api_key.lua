-- Notes when an API key was used last, by whichever of its secrets. One that was revoked meanwhile stays so.
--
-- call: hash (SHA-256 of the secret, hex), at
-- Returns: ok
--- @include job

local key = prefix .. ':api-key:' .. call.hash
local id = redis.call('HGET', key, 'id')
if id then
  redis.call('HSET', key, 'last_used_at', call.at)
  redis.call('HSET', prefix .. ':api-key:' .. redis.call('HGET', prefix .. ':api-keys', id), 'last_used_at', call.at)
end
return { 'ok' }
