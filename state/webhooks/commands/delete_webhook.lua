-- Deletes a webhook, its secrets and its log. Queued messages are dropped because their webhook no longer exists.
--
-- call: webhook_id, project
-- Returns: ok, '1' deleted | '0' unknown in this project
--- @flags allow-oom

local key = prefix .. ':webhook:' .. call.webhook_id
if redis.call('HGET', key, 'project') ~= call.project then
  return { 'ok', '0' }
end
for _, id in ipairs(redis.call('ZRANGE', deliveries_key(call.webhook_id), 0, -1)) do
  forget_delivery(call.webhook_id, id)
end
redis.call('DEL', pending_key(call.webhook_id), key)
redis.call('ZREM', prefix .. ':project:' .. call.project .. ':webhooks', call.webhook_id)
return { 'ok', '1' }
