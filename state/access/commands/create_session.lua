-- Begins a browser session of an API key, and uses up the code that begins it.
--
-- call: hash (SHA-256 of the token, hex), code_hash (of the code) or key_id, secure ('1' or ''), life_ms
-- Returns: ok, '1', key_id, end of the session (Unix time in ms) | ok, '0' the code or the key is unknown

local key_id = call.key_id
if call.code_hash then
  key_id = redis.call('GETDEL', prefix .. ':sign-in-code:' .. call.code_hash)
end
if not key_id or redis.call('HEXISTS', prefix .. ':api-keys', key_id) == 0 then
  return { 'ok', '0' }
end
if call.code_hash then
  redis.call('ZREM', prefix .. ':sign-in-codes:' .. key_id, call.code_hash)
end
local ends_at = now_ms() + call.life_ms
redis.call('HSET', prefix .. ':session:' .. call.hash, 'key_id', key_id, 'secure', call.secure)
prolong_session(key_id, call.hash, ends_at)
return { 'ok', '1', key_id, string.format('%d', ends_at) }
