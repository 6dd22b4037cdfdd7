-- Deletes a checkpoint's record at a user's request and records that its objects must be removed.
--
-- call: checkpoint_id, at
-- Returns: ok, the checkpoint (JSON), or '' when it does not exist
-- Errors: checkpoint_pinned, checkpoint_in_use, checkpoint_held
-- Events: checkpoint.deleted
--- @flags allow-oom

local job_id = redis.call('HGET', prefix .. ':checkpoint-jobs', call.checkpoint_id)
local job = job_id and load_job(job_id)
local text = job and redis.call('HGET', job_key(job_id) .. ':checkpoints', call.checkpoint_id)
if not text then
  return { 'ok', '' }
end
if cjson.decode(text).pinned then
  return failure('checkpoint_pinned', call.checkpoint_id .. ' is pinned; unpin it first')
end
if job.final ~= '1' and job.latest_checkpoint ~= '' then
  local latest = cjson.decode(job.latest_checkpoint).id
  if latest == call.checkpoint_id then
    return failure('checkpoint_in_use', 'the job would resume from ' .. call.checkpoint_id .. '; it is ' .. job.state)
  end
  local best_step = cjson.decode(redis.call('HGET', job_key(job_id) .. ':checkpoints', latest)).best_step
  if best_step == cjson.decode(text).step then
    return failure('checkpoint_in_use', call.checkpoint_id .. ' is the best checkpoint of the job, which is ' .. job.state)
  end
end
local held = held_error(call.checkpoint_id, true)
if held then
  return held
end
append_event(job_id, 'checkpoint.deleted', call.at, text)
local todo = { job_id = job_id, prefix = cjson.decode(text).prefix, project = job.project }
redis.call('HSET', prefix .. ':deleted-checkpoints', call.checkpoint_id, cjson.encode(todo))
forget_checkpoint(job, call.checkpoint_id, call.at)
return { 'ok', text }
