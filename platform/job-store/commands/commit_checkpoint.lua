-- Makes a committed checkpoint the job's latest. One that is new also gives the error budget back; one that was
-- recorded before (the call is repeated, or training falls back to it) is only made the latest.
--
-- call: job_id, epoch, checkpoint_id, checkpoint (JSON), ref (JSON {id, step, state_digest}), at
-- Returns: ok
-- Errors: job_not_found, job_final, stale_epoch
-- Events: checkpoint.committed, for a new one
--- @include job

local refused = fence(load_job(call.job_id), call.epoch)
if refused then
  return refused
end
local key = job_key(call.job_id)
redis.call('HSET', key, 'latest_checkpoint', call.ref, 'updated_at', call.at)
redis.call('HSET', prefix .. ':checkpoint-jobs', call.checkpoint_id, call.job_id)
if redis.call('HSETNX', key .. ':checkpoints', call.checkpoint_id, call.checkpoint) == 1 then
  redis.call('ZADD', key .. ':checkpoint-ids', 0, call.checkpoint_id)
  redis.call('HSET', key, 'error_count', '0')
  append_event(call.job_id, 'checkpoint.committed', call.at, call.checkpoint)
end
return { 'ok' }
