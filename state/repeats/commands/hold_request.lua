-- Renews an idempotency key's lease for a request in progress, or ends the request.
--
-- call: id, token, and one of: lease_ms (renew), reply (the request is completed), neither (nothing was done)
-- Returns: ok, '1' | '0'   another request holds the key

local key = prefix .. ':request:' .. call.id
if redis.call('HGET', key, 'token') ~= call.token then
  return { 'ok', '0' }
end
if call.lease_ms then
  redis.call('HSET', key, 'until', string.format('%d', now_ms() + call.lease_ms))
elseif call.reply then
  redis.call('HSET', key, 'reply', call.reply)
  redis.call('HDEL', key, 'until', 'token')
else
  redis.call('DEL', key)
end
return { 'ok', '1' }
