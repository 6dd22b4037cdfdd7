-- Removes a checkpoint's record for a worker (its retention rule, or a damaged checkpoint).
--
-- call: job_id, execution, checkpoint_id, at
-- Returns: ok, '1' removed | '0' unknown
-- Errors: job_not_found, job_final, stale_epoch, checkpoint_pinned, checkpoint_held
--- @flags allow-oom

local job = load_job(call.job_id)
local refused = fence(job, call.execution)
if refused then
  return refused
end
local key = job_key(call.job_id)
local text = redis.call('HGET', key .. ':checkpoints', call.checkpoint_id)
if not text then
  return { 'ok', '0' }
end
if cjson.decode(text).pinned then
  return failure('checkpoint_pinned', call.checkpoint_id .. ' is pinned')
end
local held = held_error(call.checkpoint_id)
if held then
  return held
end
forget_checkpoint(job, call.checkpoint_id, call.at)
return { 'ok', '1' }
