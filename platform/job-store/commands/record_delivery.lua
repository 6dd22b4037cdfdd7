-- Notes one attempt to send a message, and what became of the message.
--
-- call: delivery_id, round (of the attempt), attempt (JSON), state, next_attempt_at ('' for none), keep (attempts)
-- Returns: ok     also when the log has no such message any more, or it is being sent anew: nothing is changed
--- @include job

local key = prefix .. ':delivery:' .. call.delivery_id
if tonumber(redis.call('HGET', key, 'round') or 0) ~= call.round then
  return { 'ok' }
end
redis.call('HSET', key, 'state', call.state, 'next_attempt_at', call.next_attempt_at)
redis.call('RPUSH', key .. ':attempts', call.attempt)
redis.call('LTRIM', key .. ':attempts', -call.keep, -1)
return { 'ok' }
