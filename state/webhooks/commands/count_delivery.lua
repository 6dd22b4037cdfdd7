-- Counts a message as pending. Gives up messages that the webhook's log has dropped. In a project with too many pending
-- messages it gives up the oldest ones of the webhook that has the most.
--
-- call: webhook_id, project, delivery_id, round, keep (maximum number of pending messages of the project)
-- Returns: ok, position, failing, entry…
--   position rank among the pending messages of its project, fair among webhooks, from 1 on; 0: it must not be sent
--   failing  1: the last attempt to send this webhook a message failed
--   entries  queue entries of messages that were given up

local own, log = pending_key(call.webhook_id), deliveries_key(call.webhook_id)
local entry = entry_of(call.delivery_id, call.round)
local reply = { 'ok', 0, redis.call('HEXISTS', prefix .. ':webhook:' .. call.webhook_id, 'failing_since') }
if not redis.call('ZSCORE', log, call.delivery_id) then
  return reply
end
redis.call('ZADD', own, 0, entry)
-- Ids ascend with time, and the name of an entry begins with the id.
local oldest = redis.call('ZRANGE', log, 0, 0)[1]
for _, forgotten in ipairs(redis.call('ZRANGEBYLEX', own, '-', '(' .. oldest)) do
  redis.call('ZREM', own, forgotten)
  reply[#reply + 1] = forgotten
end

local pending, total = {}, 0
for _, id in ipairs(redis.call('ZRANGE', prefix .. ':project:' .. call.project .. ':webhooks', 0, -1)) do
  pending[#pending + 1] = { id = id, count = redis.call('ZCARD', pending_key(id)) }
  total = total + pending[#pending].count
end
for _ = call.keep + 1, total do
  table.sort(pending, function(a, b)
    return a.count > b.count
  end)
  local most = pending[1]
  local given_up = redis.call('ZRANGE', pending_key(most.id), 0, 0)[1]
  redis.call('ZREM', pending_key(most.id), given_up)
  forget_delivery(most.id, string.match(given_up, '^(.*)-%d+$'))
  most.count = most.count - 1
  reply[#reply + 1] = given_up
end
if redis.call('ZSCORE', own, entry) then
  local webhooks = 0
  for _, webhook in ipairs(pending) do
    webhooks = webhooks + (webhook.count > 0 and 1 or 0)
  end
  reply[2] = redis.call('ZCARD', own) * webhooks
end
return reply
