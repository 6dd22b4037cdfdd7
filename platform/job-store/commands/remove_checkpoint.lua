-- A worker forgets a checkpoint (its retention rule, or one that turned out to be damaged).
--
-- call: job_id, epoch, checkpoint_id, at
-- Returns: ok, '1' removed | '0' unknown
-- Errors: job_not_found, job_final, stale_epoch, checkpoint_pinned
--- @include job

local job = load_job(call.job_id)
local refused = fence(job, call.epoch)
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
redis.call('HDEL', key .. ':checkpoints', call.checkpoint_id)
redis.call('ZREM', key .. ':checkpoint-ids', call.checkpoint_id)
if job.latest_checkpoint ~= '' and cjson.decode(job.latest_checkpoint).id == call.checkpoint_id then
  local newest = redis.call('ZREVRANGE', key .. ':checkpoint-ids', 0, 0)[1]
  local ref = ''
  if newest then
    local other = cjson.decode(redis.call('HGET', key .. ':checkpoints', newest))
    ref = cjson.encode({ id = other.id, step = other.step, state_digest = other.state_digest })
  end
  redis.call('HSET', key, 'latest_checkpoint', ref, 'updated_at', call.at)
end
return { 'ok', '1' }
