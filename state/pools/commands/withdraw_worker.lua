-- Removes a worker that leaves: nothing is allocated on it any more.
--
-- call: worker_id
-- Returns: ok     also for an unknown worker
--- @flags allow-oom

local pool = redis.call('HGET', prefix .. ':worker:' .. call.worker_id, 'pool')
if pool then
  forget_worker(pool, call.worker_id)
else
  -- A worker that had already expired may have received queue entries since.
  redis.call('SADD', prefix .. ':removed-workers', call.worker_id)
end
return { 'ok' }
