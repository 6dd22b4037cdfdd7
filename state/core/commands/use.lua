-- Use and quota of a project. Needs job.lua.
--
--   <index>:quota         hash  max_jobs, max_ranks, max_storage_bytes; an absent field is unlimited
--   <index>:used          hash  ranks, dataset_bytes, model_bytes, checkpoint_bytes, upload_bytes: present use
--   <index>:stored        hash  id of a dataset, model, checkpoint or incomplete upload -> its bytes in `used`
--   <index>:usage:<day>   hash  jobs, run_ms, rank_ms, cost, tokens of one day (days since 1970, UTC); expires
--
-- `ranks` is the sum of the field `counted_ranks` of all jobs. Records from before quotas existed count in none of
-- them.

local USAGE_KEPT_MS = 400 * 86400000

-- States in which a job holds or requests ranks.
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
    redis.call('HINCRBY', index_key(project, 'used'), field, string.format('%.0f', amount))
  end
end

-- Counts the ranks of a job in `state`, in place of its previous count.
local function count_ranks(id, project, state)
  local fields = redis.call('HMGET', job_key(id), 'counted_ranks', 'requested_ranks')
  local before = tonumber(fields[1] or 0)
  local now = ASKING[state] and tonumber(fields[2]) or 0
  if now ~= before then
    redis.call('HSET', job_key(id), 'counted_ranks', now)
    add_use(project, 'ranks', now - before)
  end
end

-- Counts `bytes` of a stored object, 0 after its removal. kind: 'dataset' | 'model' | 'checkpoint' | 'upload'
local function count_stored(project, kind, id, bytes)
  local stored = index_key(project, 'stored')
  add_use(project, kind .. '_bytes', bytes - tonumber(redis.call('HGET', stored, id) or 0))
  if bytes == 0 then
    redis.call('HDEL', stored, id)
  else
    redis.call('HSET', stored, id, string.format('%.0f', bytes))
  end
end

-- Returns the bytes reserved for an incomplete upload.
local function reserved_bytes(project, upload_id)
  return tonumber(redis.call('HGET', index_key(project, 'stored'), upload_id) or 0)
end

-- Adds to the project's usage of today.
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

local ASK_FOR_MORE = ', or ask an operator for a larger quota'

-- Returns an error when the project may not have another unfinished job, else nil.
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
  local have = project .. ' has ' .. jobs .. ' unfinished jobs, and its quota is ' .. max
  return failure('jobs_quota_exceeded', have .. ': wait until one has ended, cancel one' .. ASK_FOR_MORE)
end

-- Returns an error when jobs of the project may not request `more` ranks, else nil.
local function ranks_error(project, more)
  local max = max_of(project, 'max_ranks')
  local ranks = tonumber(redis.call('HGET', index_key(project, 'used'), 'ranks') or 0)
  if not max or more <= 0 or ranks + more <= max then
    return nil
  end
  local have = 'jobs of ' .. project .. ' request ' .. ranks .. ' ranks of a quota of ' .. max .. ', which ' .. more
  return failure('ranks_quota_exceeded', have .. ' more would exceed: request fewer, pause or resize a job' .. ASK_FOR_MORE)
end

-- Returns an error when the project may not store `more` bytes, else nil; with 0, when its quota is used up.
local function storage_error(project, more)
  local max = max_of(project, 'max_storage_bytes')
  if not max then
    return nil
  end
  local bytes = 0
  for _, kind in ipairs({ 'dataset_bytes', 'model_bytes', 'checkpoint_bytes', 'upload_bytes' }) do
    bytes = bytes + tonumber(redis.call('HGET', index_key(project, 'used'), kind) or 0)
  end
  if bytes + math.max(more, 1) <= max then
    return nil
  end
  local have = string.format('%s stores %.0f bytes, and its quota is %.0f', project, bytes, max)
  return failure('storage_quota_exceeded', have .. ': delete datasets, models, checkpoints or uploads' .. ASK_FOR_MORE)
end

-- Adds the usage of the job since the last call: its slots for as long as its lease was valid, by the server's clock.
-- So nothing is counted twice, and the usage of a killed worker is counted as well.
local function account(id, job)
  local since = tonumber(job.accounted_at)
  if job.worker == '' or not since then
    return
  end
  local up_to = math.min(now_ms(), tonumber(job.lease_until))
  local ms = math.max(0, up_to - since)
  local slots = 0
  for _, placement in ipairs(cjson.decode((job.placements or '') ~= '' and job.placements or '[]')) do
    slots = slots + placement.slots
  end
  local price = tonumber(job.price_per_rank_hour) or 0
  job.run_ms = (tonumber(job.run_ms) or 0) + ms
  job.rank_ms = (tonumber(job.rank_ms) or 0) + ms * slots
  job.cost = (tonumber(job.cost) or 0) + ms * slots * price / 3600000
  add_usage(job.project, 'run_ms', ms)
  add_usage(job.project, 'rank_ms', ms * slots)
  add_usage(job.project, 'cost', ms * slots * price / 3600000)
  redis.call(
    'HSET',
    job_key(id),
    'run_ms',
    string.format('%d', job.run_ms),
    'rank_ms',
    string.format('%d', job.rank_ms),
    'cost',
    string.format('%.12g', job.cost),
    'accounted_at',
    string.format('%d', math.max(up_to, since))
  )
end

-- Returns whether the job has used up its budget since a user last resumed it. Call account() before.
local function is_over_budget(job)
  local max_run_ms = tonumber(job.max_run_ms)
  local max_cost = tonumber(job.max_cost)
  local run_ms = (tonumber(job.run_ms) or 0) - (tonumber(job.run_ms_before) or 0)
  local cost = (tonumber(job.cost) or 0) - (tonumber(job.cost_before) or 0)
  return (max_run_ms and run_ms >= max_run_ms) or (max_cost and cost >= max_cost) or false
end
