-- Records a committed checkpoint as the job's latest, and gives the error budget back.
--
-- call: job_id, epoch, checkpoint_id, checkpoint (JSON), ref (JSON {id, step, state_digest}), at
-- Returns: ok     also when the checkpoint was recorded before
-- Errors: job_not_found, job_final, stale_epoch
-- Events: checkpoint.committed
--- @include job

local refused = fence(load_job(call.job_id), call.epoch)
if refused then
  return refused
end
local key = job_key(call.job_id)
if redis.call('HSETNX', key .. ':checkpoints', call.checkpoint_id, call.checkpoint) == 1 then
  redis.call('ZADD', key .. ':checkpoint-ids', 0, call.checkpoint_id)
  redis.call('HSET', key, 'latest_checkpoint', call.ref, 'error_count', '0', 'updated_at', call.at)
  append_event(call.job_id, 'checkpoint.committed', call.at, call.checkpoint)
end
return { 'ok' }
