-- Requests a new round of a message in the log, together with its outbox entry, atomically.
--
-- call: webhook_id, project, delivery_id
-- Returns: ok, '1' requested, or pending already | '0' the log of the project's webhook has no such message

local webhook = prefix .. ':webhook:' .. call.webhook_id
if redis.call('HGET', webhook, 'project') ~= call.project then
  return { 'ok', '0' }
end
if not redis.call('ZSCORE', webhook .. ':deliveries', call.delivery_id) then
  return { 'ok', '0' }
end
local key = prefix .. ':delivery:' .. call.delivery_id
if redis.call('HGET', key, 'state') ~= 'pending' then
  redis.call('HSET', key, 'state', 'pending', 'next_attempt_at', '')
  local round = redis.call('HINCRBY', key, 'round', 1)
  local fields = { 'webhook_id', call.webhook_id, 'delivery_id', call.delivery_id, 'round', round }
  redis.call('XADD', prefix .. ':webhook-outbox', '*', unpack(fields))
end
return { 'ok', '1' }
