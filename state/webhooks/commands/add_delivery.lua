-- Adds a message to a webhook's log; the oldest messages above the limit are dropped.
--
-- call: webhook_id, delivery_id, document (JSON), keep (messages of the log), project (absent: any that has the
-- webhook),
--       send (true: also adds its outbox entry, atomically)
-- Returns: ok, '1' added now or before (a repeated call changes nothing) | '0' the webhook does not exist

local webhook = prefix .. ':webhook:' .. call.webhook_id
local project = redis.call('HGET', webhook, 'project')
if not project or (call.project and project ~= call.project) then
  return { 'ok', '0' }
end
local key = prefix .. ':delivery:' .. call.delivery_id
if redis.call('EXISTS', key) == 1 then
  return { 'ok', '1' }
end
redis.call('HSET', key, 'document', call.document, 'state', 'pending', 'round', '1', 'next_attempt_at', '')
local log = deliveries_key(call.webhook_id)
redis.call('ZADD', log, 0, call.delivery_id)
for _, id in ipairs(redis.call('ZRANGE', log, 0, -call.keep - 1)) do
  forget_delivery(call.webhook_id, id)
end
if call.send then
  local fields = { 'webhook_id', call.webhook_id, 'delivery_id', call.delivery_id, 'round', 1 }
  redis.call('XADD', prefix .. ':webhook-outbox', '*', unpack(fields))
end
return { 'ok', '1' }
