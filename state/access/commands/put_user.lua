-- Records a user who has signed in, or replaces the record.
--
-- call: user_id, project, document (JSON), life_ms
-- Returns: ok
-- Events: publishes the id of the user on <prefix>:principals:changed

local key = prefix .. ':principal:' .. call.user_id
local before = redis.call('HGET', key, 'project')
if before then
  redis.call('ZREM', index_key(before, 'user-ids'), call.user_id)
end
redis.call('HSET', key, 'document', call.document, 'project', call.project)
redis.call('PEXPIRE', key, call.life_ms)
-- The index is ordered by the end of the sign-in; users whose record has expired leave it.
local index = index_key(call.project, 'user-ids')
redis.call('ZADD', index, string.format('%d', now_ms() + call.life_ms), call.user_id)
redis.call('ZREMRANGEBYSCORE', index, '-inf', string.format('(%d', now_ms()))
redis.call('PUBLISH', prefix .. ':principals:changed', call.user_id)
return { 'ok' }
