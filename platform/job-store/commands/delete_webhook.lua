-- Forgets a webhook, its secrets and its log. Messages that are queued find nobody to be sent to.
--
-- call: webhook_id, project
-- Returns: ok, '1' deleted | '0' unknown in this project
--- @include job

local key = prefix .. ':webhook:' .. call.webhook_id
if redis.call('HGET', key, 'project') ~= call.project then
  return { 'ok', '0' }
end
for _, id in ipairs(redis.call('ZRANGE', key .. ':deliveries', 0, -1)) do
  redis.call('DEL', prefix .. ':delivery:' .. id, prefix .. ':delivery:' .. id .. ':attempts')
end
redis.call('DEL', key .. ':deliveries', key)
redis.call('ZREM', prefix .. ':project:' .. call.project .. ':webhooks', call.webhook_id)
return { 'ok', '1' }
