-- What a project uses, and what it may use. Needs include/job.lua.
--
--   <index>:quota         hash  max_jobs, max_ranks, max_storage_bytes; one that is absent is no limit
--   <index>:use           hash  ranks, dataset_bytes, model_bytes, checkpoint_bytes, upload_bytes: what there is now
--   <index>:stored        hash  id of a dataset, model, checkpoint or incomplete upload -> its bytes in `use`
--   <index>:usage:<day>   hash  jobs, run_ms, rank_ms, cost, tokens of one day (days since 1970, UTC); expires
--
-- `ranks` is the sum of the field `counted_ranks` of all jobs. What was recorded before there were quotas is in none of them.

local USAGE_KEPT_MS = 400 * 86400000

-- States in which a job has ranks or asks for some.
local ASKING = {
  queued = true,
  provisioning = true,
  starting = true,
  running = true,
  recovering = true,
  pausing = true,
  cancelling = true,
}

local function add_use(project, field, amount)
  if amount ~= 0 then
    redis.call('HINCRBY', index_key(project, 'use'), field, string.format('%.0f', amount))
  end
end

-- Counts the ranks of a job that is in `state` now, and no longer those that were counted before.
local function count_ranks(id, project, state)
  local fields = redis.call('HMGET', job_key(id), 'counted_ranks', 'requested_ranks')
  local before = tonumber(fields[1] or 0)
  local now = ASKING[state] and tonumber(fields[2]) or 0
  if now ~= before then
    redis.call('HSET', job_key(id), 'counted_ranks', now)
    add_use(project, 'ranks', now - before)
  end
end

-- Counts `bytes` for something that is stored, 0 when it is no more. kind: 'dataset' | 'model' | 'checkpoint' | 'upload'
local function count_stored(project, kind, id, bytes)
  local stored = index_key(project, 'stored')
  add_use(project, kind .. '_bytes', bytes - tonumber(redis.call('HGET', stored, id) or 0))
  if bytes == 0 then
    redis.call('HDEL', stored, id)
  else
    redis.call('HSET', stored, id, string.format('%.0f', bytes))
  end
end

-- Bytes that count for an upload which is not complete.
local function reserved_bytes(project, upload_id)
  return tonumber(redis.call('HGET', index_key(project, 'stored'), upload_id) or 0)
end

-- Adds to what a project has used today.
local function add_usage(project, field, amount)
  if amount > 0 then
    local key = index_key(project, 'usage:' .. string.format('%d', math.floor(now_ms() / 86400000)))
    redis.call('HINCRBYFLOAT', key, field, string.format('%.12g', amount))
    redis.call('PEXPIRE', key, USAGE_KEPT_MS)
  end
end

local function max_of(project, name)
  return tonumber(redis.call('HGET', index_key(project, 'quota'), name) or nil)
end

local ASK_FOR_MORE = ', or ask an operator for more'

-- An error when the project may not have another job that has not ended, else nil.
local function jobs_error(project)
  local max = max_of(project, 'max_jobs')
  if not max then
    return nil
  end
  local jobs = redis.call('ZCARD', index_key(project, 'jobs:state:paused'))
  for state in pairs(ASKING) do
    jobs = jobs + redis.call('ZCARD', index_key(project, 'jobs:state:' .. state))
  end
  if jobs < max then
    return nil
  end
  local have = project .. ' has ' .. jobs .. ' jobs that have not ended, and may have ' .. max
  return failure('jobs_quota_exceeded', have .. ': wait for one, cancel one' .. ASK_FOR_MORE)
end

-- An error when jobs of the project may not ask for `more` ranks, else nil.
local function ranks_error(project, more)
  local max = max_of(project, 'max_ranks')
  local ranks = tonumber(redis.call('HGET', index_key(project, 'use'), 'ranks') or 0)
  if not max or more <= 0 or ranks + more <= max then
    return nil
  end
  local have = 'jobs of ' .. project .. ' ask for ' .. ranks .. ' ranks, and may ask for ' .. max .. ', so not for ' .. more
  return failure('ranks_quota_exceeded', have .. ' more: ask for fewer, pause or resize a job' .. ASK_FOR_MORE)
end

-- An error when the project may not store `more` bytes, else nil; with 0, when nothing is left.
local function storage_error(project, more)
  local max = max_of(project, 'max_storage_bytes')
  if not max then
    return nil
  end
  local bytes = 0
  for _, kind in ipairs({ 'dataset_bytes', 'model_bytes', 'checkpoint_bytes', 'upload_bytes' }) do
    bytes = bytes + tonumber(redis.call('HGET', index_key(project, 'use'), kind) or 0)
  end
  if bytes + math.max(more, 1) <= max then
    return nil
  end
  local have = string.format('%s stores %.0f bytes, and may store %.0f', project, bytes, max)
  return failure('storage_quota_exceeded', have .. ': delete datasets, models, checkpoints or uploads' .. ASK_FOR_MORE)
end
