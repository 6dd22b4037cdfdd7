-- Records the last use of an API key, for both of its secrets. A key that was revoked meanwhile stays revoked.
--
-- call: key_id, at
-- Returns: ok

local hash = redis.call('HGET', prefix .. ':api-keys', call.key_id)
if hash then
  local key = prefix .. ':api-key:' .. hash
  redis.call('HSET', key, 'last_used_at', call.at)
  local known = redis.call('HGET', key, 'previous')
  local previous = known and prefix .. ':api-key:' .. known
  -- An expired secret must not be accepted again.
  if previous and redis.call('EXISTS', previous) == 1 then
    redis.call('HSET', previous, 'last_used_at', call.at)
  end
end
return { 'ok' }
