-- Marks a checkpoint that a worker found damaged: it never becomes the latest again, and the previous one is the
-- latest.
--
-- call: job_id, execution, checkpoint_id, at
-- Returns: ok
-- Errors: job_not_found, job_final, stale_epoch

local job = load_job(call.job_id)
local refused = fence(job, call.execution)
if refused then
  return refused
end
if redis.call('HEXISTS', job_key(call.job_id) .. ':checkpoints', call.checkpoint_id) == 1 then
  give_up_latest(job, call.checkpoint_id, call.at)
  mark_checkpoint(call.job_id, call.checkpoint_id, 'damaged', true)
end
return { 'ok' }
