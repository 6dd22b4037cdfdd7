-- Sets the rest of a session's life. A session that has ended meanwhile stays so.
--
-- call: hash (SHA-256 of the token, hex), life_ms
-- Returns: ok

local principal_id = redis.call('HGET', prefix .. ':session:' .. call.hash, 'principal_id')
if principal_id then
  prolong_session(principal_id, call.hash, now_ms() + call.life_ms)
end
return { 'ok' }
