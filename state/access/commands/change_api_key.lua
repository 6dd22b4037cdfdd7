-- Changes fields of an API key, for both of its secrets, if they still have the values that the caller read.
--
-- call: key_id, from {field: text}, to {field: text}, both with the name
-- Returns: ok, '1', the fields and values of the key | ok, '0' a field has changed since, or the key does not exist
-- Errors: api_key_builtin

local hash = redis.call('HGET', prefix .. ':api-keys', call.key_id)
if not hash then
  return { 'ok', '0' }
end
local key = prefix .. ':api-key:' .. hash
local known = redis.call('HMGET', key, 'builtin', 'previous', 'project')
if known[1] == '1' then
  return failure(
    'api_key_builtin',
    call.key_id .. " comes from the server's configuration; make another key, or change it there and start the server again"
  )
end
for field, value in pairs(call.from) do
  if (redis.call('HGET', key, field) or '') ~= value then
    return { 'ok', '0' }
  end
end
local previous = known[2] and prefix .. ':api-key:' .. known[2]
for field, value in pairs(call.to) do
  redis.call('HSET', key, field, value)
  -- An expired key must not be created again.
  if previous and redis.call('EXISTS', previous) == 1 then
    redis.call('HSET', previous, field, value)
  end
end
local names = index_key(known[3], 'api-key-ids:name:')
redis.call('ZREM', names .. call.from.name, call.key_id)
redis.call('ZADD', names .. call.to.name, 0, call.key_id)
redis.call('PUBLISH', prefix .. ':principals:changed', call.key_id)
return { 'ok', '1', unpack(redis.call('HGETALL', key)) }
