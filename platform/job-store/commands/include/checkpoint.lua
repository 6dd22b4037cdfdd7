-- Changes of a job's checkpoints. Needs include/job.lua.

-- Takes a checkpoint out of the record `job` (loaded) and makes the one before it the latest.
local function forget_checkpoint(job, checkpoint_id, at)
  local key = job_key(job.id)
  -- Writes that need memory come first: a server without any refuses them, and then nothing is removed either.
  local latest = job.latest_checkpoint
  if latest ~= '' and cjson.decode(latest).id == checkpoint_id then
    latest = ''
    for _, id in ipairs(redis.call('ZREVRANGE', key .. ':checkpoint-ids', 0, 1)) do
      if id ~= checkpoint_id and latest == '' then
        local other = cjson.decode(redis.call('HGET', key .. ':checkpoints', id))
        latest = cjson.encode({ id = other.id, step = other.step, state_digest = other.state_digest })
      end
    end
  end
  redis.call('HSET', key, 'latest_checkpoint', latest, 'updated_at', at)
  redis.call('HDEL', key .. ':checkpoints', checkpoint_id)
  redis.call('ZREM', key .. ':checkpoint-ids', checkpoint_id)
end
