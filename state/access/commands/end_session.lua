-- Ends a browser session.
--
-- call: hash (SHA-256 of the token, hex)
-- Returns: ok
-- Events: publishes the id of the principal on <prefix>:principals:changed
--- @flags allow-oom

local session = prefix .. ':session:' .. call.hash
local principal_id = redis.call('HGET', session, 'principal_id')
if principal_id then
  redis.call('DEL', session)
  redis.call('ZREM', prefix .. ':sessions:' .. principal_id, call.hash)
  redis.call('PUBLISH', prefix .. ':principals:changed', principal_id)
end
return { 'ok' }
