-- Changes of a job's checkpoints. Needs job.lua, use.lua.

-- Position of a checkpoint in the job's index: by step, then by id. An id contains the time of the host that wrote it,
-- and the clocks of hosts differ.
local function checkpoint_order(step, checkpoint_id)
  return string.format('%012d:%s', step, checkpoint_id)
end

-- Writes a new or changed document of a checkpoint.
local function add_checkpoint(job_id, checkpoint_id, text)
  local key = job_key(job_id)
  local project = redis.call('HGET', key, 'project') or 'default'
  count_stored(project, 'checkpoint', checkpoint_id, cjson.decode(text).bytes)
  redis.call('HSET', key .. ':checkpoints', checkpoint_id, text)
  redis.call('ZADD', key .. ':checkpoint-order', 0, checkpoint_order(cjson.decode(text).step, checkpoint_id))
  redis.call('HSET', prefix .. ':checkpoint-jobs', checkpoint_id, job_id)
  redis.call('ZADD', index_key(project, 'checkpoints'), 0, checkpoint_id)
end

-- Makes the newest other undamaged checkpoint the latest, if `checkpoint_id` is the latest in the record `job`
-- (loaded).
local function give_up_latest(job, checkpoint_id, at)
  local key = job_key(job.id)
  local latest = job.latest_checkpoint
  if latest ~= '' and cjson.decode(latest).id == checkpoint_id then
    latest = ''
    for _, entry in ipairs(redis.call('ZREVRANGE', key .. ':checkpoint-order', 0, -1)) do
      local id = string.match(entry, ':(.*)$')
      local other = cjson.decode(redis.call('HGET', key .. ':checkpoints', id))
      if id ~= checkpoint_id and not other.damaged then
        latest = cjson.encode({ id = other.id, step = other.step, state_digest = other.state_digest })
        break
      end
    end
  end
  redis.call('HSET', key, 'latest_checkpoint', latest, 'updated_at', at)
end

-- Sets a boolean field of a checkpoint's document. Returns the document.
local function mark_checkpoint(job_id, checkpoint_id, field, value)
  local key = job_key(job_id) .. ':checkpoints'
  -- The field is changed in the text: numbers must not pass through Lua's floating point.
  local pattern = '"' .. field .. '":%a+'
  local changed = string.gsub(redis.call('HGET', key, checkpoint_id), pattern, '"' .. field .. '":' .. tostring(value), 1)
  redis.call('HSET', key, checkpoint_id, changed)
  return changed
end

-- Number of removed checkpoints whose jobs are remembered: the newest by id.
local REMOVED_KEPT = 100000

-- Removes a checkpoint from the record `job` (loaded) and makes the previous one the latest.
local function forget_checkpoint(job, checkpoint_id, at)
  local key = job_key(job.id)
  local step = cjson.decode(redis.call('HGET', key .. ':checkpoints', checkpoint_id)).step
  -- Writes that need memory come first: a server without memory refuses them, and then nothing is removed either.
  redis.call('ZADD', prefix .. ':removed-checkpoints', 0, checkpoint_id .. ' ' .. job.id)
  redis.call('ZREMRANGEBYRANK', prefix .. ':removed-checkpoints', 0, -REMOVED_KEPT - 1)
  give_up_latest(job, checkpoint_id, at)
  redis.call('ZREM', key .. ':checkpoint-order', checkpoint_order(step, checkpoint_id))
  redis.call('HDEL', key .. ':checkpoints', checkpoint_id)
  redis.call('HDEL', prefix .. ':checkpoint-jobs', checkpoint_id)
  redis.call('ZREM', index_key(job.project, 'checkpoints'), checkpoint_id)
  count_stored(job.project, 'checkpoint', checkpoint_id, 0)
end

local function holds_key(checkpoint_id)
  return prefix .. ':checkpoint:' .. checkpoint_id .. ':holds'
end

local function is_recorded(checkpoint_id)
  local job_id = redis.call('HGET', prefix .. ':checkpoint-jobs', checkpoint_id)
  return job_id and redis.call('HEXISTS', job_key(job_id) .. ':checkpoints', checkpoint_id) == 1
end

-- Holder name of downloads. The end of a download is unknown; this holder blocks the retention rule, but not a user.
local DOWNLOAD = 'download'

-- Keeps a checkpoint from being removed while `holder` reads it, for `ttl_ms` unless it is released earlier. A longer
-- existing hold stays.
local function hold_checkpoint(checkpoint_id, holder, ttl_ms)
  local key = holds_key(checkpoint_id)
  local before = tonumber(redis.call('ZSCORE', key, holder) or 0)
  redis.call('ZADD', key, string.format('%d', math.max(before, now_ms() + ttl_ms)), holder)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%d', now_ms()))
  if redis.call('PTTL', key) < ttl_ms then
    redis.call('PEXPIRE', key, ttl_ms)
  end
end

-- Releases the hold of the job `job` (its record) on its initial checkpoint.
local function let_go_of_source(job)
  if job.init_checkpoint ~= '' then
    redis.call('ZREM', holds_key(job.init_checkpoint), job.id)
  end
end

-- Jobs whose adapters are over a checkpoint.
local function adapters_key(checkpoint_id)
  return prefix .. ':checkpoint:' .. checkpoint_id .. ':adapters'
end

-- Returns an error when the checkpoint is held, else nil. `by_person`: downloads do not count.
local function held_error(checkpoint_id, by_person)
  local user = redis.call('SRANDMEMBER', adapters_key(checkpoint_id))
  if user then
    return failure('checkpoint_held', 'the adapters of ' .. user .. ' need ' .. checkpoint_id .. '; delete that job first')
  end
  -- Expired holds are only skipped: a removal as the first write would let writes pass that need memory.
  local now = string.format('(%d', now_ms())
  for _, holder in ipairs(redis.call('ZRANGEBYSCORE', holds_key(checkpoint_id), now, '+inf', 'LIMIT', 0, 2)) do
    if not (by_person and holder == DOWNLOAD) then
      return failure('checkpoint_held', holder .. ' is reading ' .. checkpoint_id)
    end
  end
  return nil
end
