-- Makes a committed checkpoint the job's latest. A new checkpoint also resets the error budget; one that was recorded
-- before (a repeated call, or training falls back to it) is only made the latest.
--
-- call: job_id, execution, checkpoint_id, save_request (may be absent), checkpoint (JSON), ref (JSON
--       {id, step, state_digest}), at
-- Returns: ok
-- Errors: job_not_found, job_final, stale_epoch; checkpoint_not_found for a checkpoint that a user has deleted
-- Events: checkpoint.committed, for a new checkpoint

local job = load_job(call.job_id)
local refused = fence(job, call.execution)
if refused then
  return refused
end
if redis.call('HEXISTS', prefix .. ':deleted-checkpoints', call.checkpoint_id) == 1 then
  return failure('checkpoint_not_found', call.checkpoint_id .. ' was deleted; its objects will be removed')
end
local key = job_key(call.job_id)
if call.save_request and call.save_request > tonumber(job.save_completed or 0) then
  redis.call('HSET', key, 'save_completed', string.format('%d', call.save_request))
end
redis.call('HSET', key, 'latest_checkpoint', call.ref, 'updated_at', call.at)
if redis.call('HEXISTS', key .. ':checkpoints', call.checkpoint_id) == 0 then
  add_checkpoint(call.job_id, call.checkpoint_id, call.checkpoint)
  redis.call('HSET', key, 'error_count', '0', 'lost_workers', '0', 'lost_workers_before', '0')
  let_go_of_source(job)
  append_event(call.job_id, 'checkpoint.committed', call.at, call.checkpoint)
end
return { 'ok' }
