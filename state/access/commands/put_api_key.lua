-- Accepts an API key from now on; a repeat with the same secret keeps id and creation time and replaces the rest.
--
-- call: hash (SHA-256 of the secret, hex), key_id, fields {name, scopes (JSON), project, …}, at
-- Returns: ok, the fields and values of the key

local key = prefix .. ':api-key:' .. call.hash
redis.call('HSETNX', key, 'id', call.key_id)
redis.call('HSETNX', key, 'created_at', call.at)
local known = redis.call('HMGET', key, 'id', 'project', 'name')
if known[2] then
  local before = index_key(known[2], 'api-key-ids')
  redis.call('ZREM', before, known[1])
  redis.call('ZREM', before .. ':name:' .. known[3], known[1])
end
for field, value in pairs(call.fields) do
  redis.call('HSET', key, field, value)
end
redis.call('HSET', prefix .. ':api-keys', known[1], call.hash)
local index = index_key(call.fields.project, 'api-key-ids')
redis.call('ZADD', index, 0, known[1])
redis.call('ZADD', index .. ':name:' .. call.fields.name, 0, known[1])
know_project(call.fields.project)
redis.call('PUBLISH', prefix .. ':principals:changed', call.key_id)
return { 'ok', unpack(redis.call('HGETALL', key)) }
