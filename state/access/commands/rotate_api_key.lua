-- Gives an API key a new secret. The previous secret is accepted for a while, older ones no longer. Without an overlap,
-- the sessions of the key end as well: they may have begun with the previous secret.
--
-- call: key_id, hash (SHA-256 of the new secret, hex), overlap_ms
-- Returns: ok, the fields and values of the key
-- Errors: api_key_not_found, api_key_builtin

local before = redis.call('HGET', prefix .. ':api-keys', call.key_id)
if not before then
  return failure('api_key_not_found', 'there is no API key ' .. call.key_id)
end
local old, new = prefix .. ':api-key:' .. before, prefix .. ':api-key:' .. call.hash
if redis.call('HGET', old, 'builtin') == '1' then
  return failure(
    'api_key_builtin',
    call.key_id .. " comes from the server's configuration; change it there, start the server again, and revoke this one"
  )
end
local previous = redis.call('HGET', old, 'previous')
redis.call('HSET', new, unpack(redis.call('HGETALL', old)))
redis.call('HSET', prefix .. ':api-keys', call.key_id, call.hash)
redis.call('HDEL', old, 'previous', 'previous_until')
if previous then
  redis.call('DEL', prefix .. ':api-key:' .. previous)
end
if call.overlap_ms > 0 then
  redis.call('HSET', new, 'previous', before, 'previous_until', string.format('%d', now_ms() + call.overlap_ms))
  redis.call('PEXPIRE', old, call.overlap_ms)
else
  redis.call('HDEL', new, 'previous', 'previous_until')
  redis.call('DEL', old)
  end_sessions(call.key_id)
end
redis.call('PUBLISH', prefix .. ':principals:changed', call.key_id)
return { 'ok', unpack(redis.call('HGETALL', new)) }
