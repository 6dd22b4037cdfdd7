-- Sets the rest of a session's life. A session that has ended meanwhile stays so.
--
-- call: hash (SHA-256 of the token, hex), life_ms
-- Returns: ok

local key_id = redis.call('HGET', prefix .. ':session:' .. call.hash, 'key_id')
if key_id then
  prolong_session(key_id, call.hash, now_ms() + call.life_ms)
end
return { 'ok' }
