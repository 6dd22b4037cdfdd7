-- A worker offers its slots for a while. Workers whose time is up are forgotten.
--
-- call: worker_id, pool, slots, draining, numerics ('' where it is not known), gpu_bytes (memory of the
--   smallest of its GPUs; absent: ranks run on the CPU), record (JSON), ttl_ms
-- Returns: ok
--- @include job

local now = now_ms()
local workers = prefix .. ':pool:' .. call.pool .. ':workers'
for _, id in ipairs(redis.call('ZRANGEBYSCORE', workers, '-inf', string.format('%d', now))) do
  redis.call('DEL', prefix .. ':worker:' .. id)
  redis.call('ZREM', workers, id)
end
redis.call(
  'HSET',
  prefix .. ':worker:' .. call.worker_id,
  'record',
  call.record,
  'pool',
  call.pool,
  'slots',
  call.slots,
  'draining',
  call.draining and '1' or '',
  'numerics',
  call.numerics,
  'gpu_bytes',
  call.gpu_bytes and string.format('%d', call.gpu_bytes) or '',
  'seen_at',
  string.format('%d', now)
)
redis.call('ZADD', workers, string.format('%d', now + call.ttl_ms), call.worker_id)
redis.call('SADD', prefix .. ':pools', call.pool)
return { 'ok' }
