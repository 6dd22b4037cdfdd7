-- Says of a request that holds an idempotency key that it is still under way, or how it has ended.
--
-- call: id, token, and one of: lease_ms (it holds the key for so long), reply (it was carried out), neither (nothing was done)
-- Returns: ok, '1' | '0'   the key is another request's by now
--- @include job

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
