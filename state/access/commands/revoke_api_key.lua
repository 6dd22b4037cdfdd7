-- Removes an API key with its sessions; none of its secrets is accepted any more.
--
-- call: key_id
-- Returns: ok, '1' revoked | '0' unknown
--- @flags allow-oom

local hash = redis.call('HGET', prefix .. ':api-keys', call.key_id)
if not hash then
  return { 'ok', '0' }
end
local key = prefix .. ':api-key:' .. hash
local fields = redis.call('HMGET', key, 'previous', 'project', 'name')
if fields[1] then
  redis.call('DEL', prefix .. ':api-key:' .. fields[1])
end
redis.call('DEL', key)
redis.call('HDEL', prefix .. ':api-keys', call.key_id)
local index = index_key(fields[2], 'api-key-ids')
redis.call('ZREM', index, call.key_id)
redis.call('ZREM', index .. ':name:' .. fields[3], call.key_id)
end_sessions(call.key_id)
redis.call('PUBLISH', prefix .. ':principals:changed', call.key_id)
return { 'ok', '1' }
