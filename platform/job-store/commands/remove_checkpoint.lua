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
-- Writes that need memory come first: a server without any refuses them, and then nothing is removed either.
local latest = job.latest_checkpoint
if latest ~= '' and cjson.decode(latest).id == call.checkpoint_id then
  latest = ''
  for _, id in ipairs(redis.call('ZREVRANGE', key .. ':checkpoint-ids', 0, 1)) do
    if id ~= call.checkpoint_id and latest == '' then
      local other = cjson.decode(redis.call('HGET', key .. ':checkpoints', id))
      latest = cjson.encode({ id = other.id, step = other.step, state_digest = other.state_digest })
    end
  end
end
redis.call('HSET', key, 'latest_checkpoint', latest, 'updated_at', call.at)
redis.call('HDEL', key .. ':checkpoints', call.checkpoint_id)
redis.call('ZREM', key .. ':checkpoint-ids', call.checkpoint_id)
return { 'ok', '1' }
