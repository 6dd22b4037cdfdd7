-- A worker leaves: nothing is allocated on it any more.
--
-- call: worker_id
-- Returns: ok     also for a worker that is not known
--- @include job
--- @include attempt
--- @include use
--- @include state
--- @include pool

local pool = redis.call('HGET', prefix .. ':worker:' .. call.worker_id, 'pool')
if pool then
  forget_worker(pool, call.worker_id)
else
  -- One that was taken for gone may have written to its queue since.
  redis.call('SADD', prefix .. ':gone-workers', call.worker_id)
end
return { 'ok' }
