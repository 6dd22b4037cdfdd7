-- Records one attempt to send a message, and the message's new state.
--
-- call: webhook_id, delivery_id, round (of the attempt), attempt (JSON), at, state, next_attempt_at ('' for none),
--       keep (attempts), failing (true: the receiver did not accept it; false: it did; absent: it was not contacted)
-- Returns: ok, failing_since     '' when the last message was accepted
-- A message that has left the log, or that is being sent again, is not changed in the log.

local webhook = prefix .. ':webhook:' .. call.webhook_id
if call.failing == false then
  redis.call('HDEL', webhook, 'failing_since')
elseif call.failing and redis.call('EXISTS', webhook) == 1 then
  redis.call('HSETNX', webhook, 'failing_since', call.at)
end
if call.state ~= 'pending' then
  redis.call('ZREM', pending_key(call.webhook_id), entry_of(call.delivery_id, call.round))
end
local key = prefix .. ':delivery:' .. call.delivery_id
if tonumber(redis.call('HGET', key, 'round') or 0) == call.round then
  redis.call('HSET', key, 'state', call.state, 'next_attempt_at', call.next_attempt_at)
  redis.call('RPUSH', key .. ':attempts', call.attempt)
  redis.call('LTRIM', key .. ':attempts', -call.keep, -1)
end
return { 'ok', redis.call('HGET', webhook, 'failing_since') or '' }
