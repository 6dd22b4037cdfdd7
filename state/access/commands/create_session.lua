-- Begins a browser session of a principal, and uses up the code that begins it.
--
-- call: hash (SHA-256 of the token, hex), code_hash (of the code) or principal_id, secure ('1' or ''), life_ms
-- Returns: ok, '1', principal_id, end of the session (Unix time in ms) | ok, '0' the code or the principal is unknown

local principal_id = call.principal_id
if call.code_hash then
  principal_id = redis.call('GETDEL', prefix .. ':sign-in-code:' .. call.code_hash)
end
if not principal_id or not principal_exists(principal_id) then
  return { 'ok', '0' }
end
if call.code_hash then
  redis.call('ZREM', prefix .. ':sign-in-codes:' .. principal_id, call.code_hash)
end
local ends_at = now_ms() + call.life_ms
redis.call('HSET', prefix .. ':session:' .. call.hash, 'principal_id', principal_id, 'secure', call.secure)
prolong_session(principal_id, call.hash, ends_at)
return { 'ok', '1', principal_id, string.format('%d', ends_at) }
