-- Registers a worker's slots for a while. Expired workers are removed.
--
-- call: worker_id, pool, slots, draining, numerics ('' when unknown), gpu_bytes (memory of the smallest of its GPUs;
--       absent: ranks run on the CPU), topology (JSON), record (JSON), ttl_ms
-- Returns: ok
--- @flags allow-oom

local now = now_ms()
local workers = prefix .. ':pool:' .. call.pool .. ':workers'
for _, id in ipairs(redis.call('ZRANGEBYSCORE', workers, '-inf', string.format('%d', now))) do
  if id ~= call.worker_id then
    forget_worker(call.pool, id)
  end
end
local key = prefix .. ':worker:' .. call.worker_id
local offer = {
  tostring(call.slots),
  call.draining and '1' or '',
  call.numerics,
  call.gpu_bytes and string.format('%d', call.gpu_bytes) or '',
  call.topology,
}
local before = redis.call('HMGET', key, 'slots', 'draining', 'numerics', 'gpu_bytes', 'topology')
redis.call('SREM', prefix .. ':removed-workers', call.worker_id)
redis.call(
  'HSET',
  key,
  'record',
  call.record,
  'pool',
  call.pool,
  'slots',
  offer[1],
  'draining',
  offer[2],
  'numerics',
  offer[3],
  'gpu_bytes',
  offer[4],
  'topology',
  offer[5],
  'seen_at',
  string.format('%d', now)
)
redis.call('ZADD', workers, string.format('%d', now + call.ttl_ms), call.worker_id)
for i = 1, #offer do
  if before[i] ~= offer[i] then
    change_pool(call.pool)
    break
  end
end
return { 'ok' }
