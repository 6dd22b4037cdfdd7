-- Takes an idempotency key for a request that is about to begin, or returns the state of the first request.
--
-- call: id, body_hash, token (of this request), lease_ms, ttl_ms
-- Returns: ok, 'begun'          the request may begin; it holds the key for lease_ms
--          ok, 'running'        another request holds the key
--          ok, 'done', reply    the request was completed before
-- Errors: idempotency_key_reused

local key = prefix .. ':request:' .. call.id
local known = redis.call('HMGET', key, 'body_hash', 'reply', 'until')
if known[1] and known[1] ~= call.body_hash then
  return failure('idempotency_key_reused', 'the idempotency key was used with another request')
end
if known[2] then
  return { 'ok', 'done', known[2] }
end
if known[3] and tonumber(known[3]) > now_ms() then
  return { 'ok', 'running' }
end
local lease = string.format('%d', now_ms() + call.lease_ms)
redis.call('HSET', key, 'body_hash', call.body_hash, 'token', call.token, 'until', lease)
redis.call('PEXPIRE', key, call.ttl_ms)
return { 'ok', 'begun' }
