-- Records a user who has signed in, or replaces the record.
--
-- call: user_id, document (JSON), life_ms
-- Returns: ok
-- Events: publishes the id of the user on <prefix>:principals:changed

local key = prefix .. ':principal:' .. call.user_id
redis.call('HSET', key, 'document', call.document)
redis.call('PEXPIRE', key, call.life_ms)
redis.call('PUBLISH', prefix .. ':principals:changed', call.user_id)
return { 'ok' }
