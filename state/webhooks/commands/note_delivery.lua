-- Records that an entry was put into a worker's queue. If the worker is already gone, its queue must be removed
-- (again).
--
-- call: worker_id
-- Returns: ok

if redis.call('EXISTS', prefix .. ':worker:' .. call.worker_id) == 0 then
  redis.call('SADD', prefix .. ':removed-workers', call.worker_id)
end
return { 'ok' }
