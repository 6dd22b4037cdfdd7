-- Puts a message into a webhook's log; the oldest ones leave it.
--
-- call: webhook_id, delivery_id, document (JSON), keep (messages of the log)
-- Returns: ok, '1' there now, or before (a repeated call changes nothing) | '0' the webhook is gone
--- @include job

local webhook = prefix .. ':webhook:' .. call.webhook_id
if redis.call('EXISTS', webhook) == 0 then
  return { 'ok', '0' }
end
local key = prefix .. ':delivery:' .. call.delivery_id
if redis.call('EXISTS', key) == 1 then
  return { 'ok', '1' }
end
redis.call('HSET', key, 'document', call.document, 'state', 'pending', 'round', '1', 'next_attempt_at', '')
redis.call('ZADD', webhook .. ':deliveries', 0, call.delivery_id)
for _, id in ipairs(redis.call('ZRANGE', webhook .. ':deliveries', 0, -call.keep - 1)) do
  redis.call('DEL', prefix .. ':delivery:' .. id, prefix .. ':delivery:' .. id .. ':attempts')
  redis.call('ZREM', webhook .. ':deliveries', id)
end
return { 'ok', '1' }
