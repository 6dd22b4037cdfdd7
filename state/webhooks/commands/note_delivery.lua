-- An entry was put into the queue of a worker. If the worker is gone by now, its queue has to be removed (again).
--
-- call: worker_id
-- Returns: ok
--- @include job

if redis.call('EXISTS', prefix .. ':worker:' .. call.worker_id) == 0 then
  redis.call('SADD', prefix .. ':gone-workers', call.worker_id)
end
return { 'ok' }
