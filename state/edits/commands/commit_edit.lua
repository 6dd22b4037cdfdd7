-- Makes a checkpoint with a changed tensor the latest of a job that no worker has claimed since the epoch `epoch`.
--
-- call: job_id, epoch, source_id (the checkpoint that was changed), checkpoint_id, checkpoint (JSON), ref (JSON
--       {id, step, state_digest}), at
-- Returns: ok    also when the checkpoint was recorded before
-- Errors: job_not_found, invalid_state, checkpoint_not_newest
-- Events: checkpoint.committed

local job = load_job(call.job_id)
if not job then
  return failure('job_not_found', 'there is no job ' .. call.job_id)
end
local key = job_key(call.job_id)
if redis.call('HEXISTS', key .. ':checkpoints', call.checkpoint_id) == 1 then
  return { 'ok' }
end
if job.state ~= 'paused' and job.final ~= '1' then
  return failure('invalid_state', 'the job is ' .. job.state .. '; pause it first')
end
if tonumber(job.epoch) ~= call.epoch then
  return failure('invalid_state', 'the job was resumed meanwhile')
end
local latest = job.latest_checkpoint ~= '' and cjson.decode(job.latest_checkpoint).id
if latest ~= call.source_id then
  return failure('checkpoint_not_newest', 'the newest checkpoint of the job is ' .. (latest or 'none'))
end
redis.call('HSET', key, 'latest_checkpoint', call.ref, 'updated_at', call.at)
add_checkpoint(call.job_id, call.checkpoint_id, call.checkpoint)
append_event(call.job_id, 'checkpoint.committed', call.at, call.checkpoint)
return { 'ok' }
