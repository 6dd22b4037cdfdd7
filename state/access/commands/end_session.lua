-- Ends a browser session.
--
-- call: hash (SHA-256 of the token, hex)
-- Returns: ok
-- Events: publishes the id of the key on <prefix>:api-keys:changed
--- @flags allow-oom

local session = prefix .. ':session:' .. call.hash
local key_id = redis.call('HGET', session, 'key_id')
if key_id then
  redis.call('DEL', session)
  redis.call('ZREM', prefix .. ':sessions:' .. key_id, call.hash)
  redis.call('PUBLISH', prefix .. ':api-keys:changed', key_id)
end
return { 'ok' }
