-- Accepts a sign-in code of a principal, once.
--
-- call: hash (SHA-256 of the code, hex), principal_id, life_ms
-- Returns: ok, end of the code (Unix time in ms)

local ends_at = string.format('%d', now_ms() + call.life_ms)
redis.call('SET', prefix .. ':sign-in-code:' .. call.hash, call.principal_id, 'PXAT', ends_at)
index_session('sign-in-code', call.principal_id, call.hash, tonumber(ends_at))
return { 'ok', ends_at }
