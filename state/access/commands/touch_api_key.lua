-- Records the last use of an API key, by any of its secrets. A key that was revoked meanwhile stays revoked.
--
-- call: hash (SHA-256 of the secret, hex), at
-- Returns: ok

local key = prefix .. ':api-key:' .. call.hash
local id = redis.call('HGET', key, 'id')
if id then
  redis.call('HSET', key, 'last_used_at', call.at)
  redis.call('HSET', prefix .. ':api-key:' .. redis.call('HGET', prefix .. ':api-keys', id), 'last_used_at', call.at)
end
return { 'ok' }
