-- Saves the state of a claimed integration: renews the claim, or ends it.
--
-- call: job_id, index, token (of the claim), state (JSON),
--       lease_ms            renews the claim; or one of the following ends it:
--       due_ms, seq         the time until the next claim; the number up to which the job's stream was forwarded,
--                           absent if there is more
--       beat_ms             the time until the next claim of a job that writes nothing; absent if it is not claimed
--                           then
--       done (true)         there is no next claim
--       event {type, at, data (JSON)} or absent
-- Returns: ok, '1'     saved
--          ok, '0'     another server has the integration now, or the job is gone: nothing is changed
-- Events: the given one

local key = forward_key(call.job_id, call.index)
if redis.call('EXISTS', job_key(call.job_id)) == 0 or redis.call('HGET', key, 'token') ~= call.token then
  return { 'ok', '0' }
end
local due, member = prefix .. ':forwards', call.job_id .. ':' .. call.index
redis.call('HSET', key, 'state', call.state)
if call.event then
  local seq = append_event(call.job_id, call.event.type, call.event.at, call.event.data)
  -- The event itself is nothing to forward.
  if call.seq and tonumber(call.seq) == seq - 1 then
    call.seq = seq
  end
end
if call.done then
  redis.call('ZREM', due, member)
else
  redis.call('ZADD', due, string.format('%d', now_ms() + (call.lease_ms or call.due_ms)), member)
end
if not call.lease_ms then
  redis.call('HSET', key, 'token', '')
end
if call.seq then
  redis.call('HSET', key, 'seq', call.seq)
else
  redis.call('HDEL', key, 'seq')
end
if call.beat_ms then
  redis.call('HSET', key, 'beat', string.format('%d', now_ms() + call.beat_ms))
else
  redis.call('HDEL', key, 'beat')
end
return { 'ok', '1' }
