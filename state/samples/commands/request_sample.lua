-- Adds a request for a sample to those that wait for a worker of a pool.
--
-- call: id, caller (process that reads the messages), pool, named (true: the pool must exist), project, model, payload
-- (JSON),
--       wait_ms (time in which the first worker has to take it), max_waiting (maximum of waiting requests of a pool)
-- Returns: ok
-- Errors: pool_not_found, sample_queue_full
-- Channels: <prefix>:pool:<pool>:samples

local key = prefix .. ':pool:' .. call.pool
local now = now_ms()
if call.named and redis.call('ZCOUNT', key .. ':workers', '(' .. string.format('%d', now), '+inf') == 0 then
  if redis.call('EXISTS', key .. ':holders', key .. ':waiting', key .. ':delayed', key .. ':machines') == 0 then
    return failure('pool_not_found', 'pool ' .. call.pool .. ' has neither a worker nor a job')
  end
end
local queue = call.project .. ' ' .. call.model
local usage = new_usage(call.max_waiting)
for _, member in ipairs(redis.call('ZRANGE', samples_key(call.pool), 0, -1)) do
  count_request(usage, string.match(member, '^%S+ %S+'), 1)
end
if not has_room(usage, queue) then
  local waiting = (usage.by_queue[queue] or 0) .. ' requests for ' .. call.model .. ', '
  waiting = waiting .. (usage.by_project[call.project] or 0) .. ' of the project and ' .. usage.used .. ' in all'
  return failure('sample_queue_full', waiting .. ' wait for pool ' .. call.pool .. '; try again')
end
redis.call(
  'HSET',
  sample_key(call.id),
  'caller',
  call.caller,
  'pool',
  call.pool,
  'queue',
  queue,
  'payload',
  call.payload,
  'since',
  string.format('%d', now),
  'until',
  string.format('%d', now + call.wait_ms),
  'worker',
  ''
)
redis.call('ZADD', samples_key(call.pool), string.format('%d', now), queue .. ' ' .. call.id)
keep_sample(call.id, call.pool)
redis.call('HINCRBY', caller_key(call.caller), 'bytes', 0)
redis.call('PEXPIRE', caller_key(call.caller), CALLER_KEPT_MS)
redis.call('PUBLISH', samples_key(call.pool), call.id)
return { 'ok' }
