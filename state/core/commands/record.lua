-- Creation of a record: the hash and the indexes. Needs job.lua, use.lua, checkpoint.lua.

-- Key of the state of one integration of a job, or of its answers to prompts, whose index follows the integrations.
local function forward_key(id, index)
  return job_key(id) .. ':forward:' .. index
end

-- Makes the integrations of a job, and its answers to prompts, due.
local function start_forwards(id, forwards)
  for index = 0, tonumber(forwards) - 1 do
    redis.call('ZADD', prefix .. ':forwards', 0, id .. ':' .. index)
    local key = forward_key(id, index)
    if redis.call('EXISTS', key) == 1 then
      redis.call('HDEL', key, 'seq')
      -- Ends a claim: its end of the forwarding is out of date.
      redis.call('HSET', key, 'token', 'anew')
    end
  end
end

local function delete_forwards(id, forwards)
  for index = 0, tonumber(forwards) - 1 do
    redis.call('ZREM', prefix .. ':forwards', id .. ':' .. index)
    redis.call('DEL', forward_key(id, index))
  end
end

-- Adds a record from fields {field: text}. The job must not exist yet.
local function add_record(id, fields)
  local flat = {}
  for field, value in pairs(fields) do
    flat[#flat + 1] = field
    flat[#flat + 1] = value
  end
  redis.call('HSET', job_key(id), unpack(flat))
  local jobs = index_key(fields.project, 'jobs')
  know_project(fields.project)
  redis.call('ZADD', jobs, 0, id)
  redis.call('ZADD', jobs .. ':state:' .. fields.state, 0, id)
  for _, index in ipairs(cjson.decode(fields.indexes)) do
    redis.call('ZADD', jobs .. ':' .. index, 0, id)
  end
  count_ranks(id, fields.project, fields.state)
end

-- Returns an error when an input of the job does not exist, else nil. `fresh`: it has no checkpoint of its own to
-- resume from.
local function missing_source(fields, fresh)
  for dataset_id in string.gmatch(fields.dataset_ids, '%S+') do
    if redis.call('EXISTS', prefix .. ':dataset:' .. dataset_id) == 0 then
      return failure('dataset_not_found', 'there is no dataset ' .. dataset_id)
    end
  end
  for model_id in string.gmatch(fields.model_ids, '%S+') do
    if redis.call('EXISTS', prefix .. ':model:' .. model_id) == 0 then
      return failure('model_not_found', 'there is no model ' .. model_id)
    end
  end
  if fresh and string.sub(fields.base, 1, 5) == 'ckpt_' and not is_recorded(fields.base) then
    return failure('checkpoint_not_found', 'checkpoint ' .. fields.base .. ' was removed')
  end
  if fresh and fields.init_checkpoint ~= '' and not is_recorded(fields.init_checkpoint) then
    return failure('checkpoint_not_found', 'checkpoint ' .. fields.init_checkpoint .. ' was removed')
  end
  return nil
end

-- Key of the jobs whose adapters are over the base `base`, a model or a checkpoint.
local function base_users_key(base)
  if string.sub(base, 1, 5) == 'ckpt_' then
    return adapters_key(base)
  end
  return prefix .. ':model:' .. base .. ':adapters'
end

-- Protects the base of the job's adapters until the job is deleted: its checkpoints do not contain the base.
local function hold_base(id, fields)
  if fields.base ~= '' then
    redis.call('SADD', base_users_key(fields.base), id)
  end
end

-- Protects the job's inputs from deletion while it lives; its initial checkpoint until it has one of its own, or for
-- `hold_ms`.
local function hold_sources(id, fields, hold_ms)
  for dataset_id in string.gmatch(fields.dataset_ids, '%S+') do
    redis.call('SADD', prefix .. ':dataset:' .. dataset_id .. ':jobs', id)
  end
  if fields.init_checkpoint ~= '' and (fields.latest_checkpoint or '') == '' then
    hold_checkpoint(fields.init_checkpoint, id, hold_ms)
  end
  for model_id in string.gmatch(fields.model_ids, '%S+') do
    redis.call('SADD', prefix .. ':model:' .. model_id .. ':jobs', id)
  end
end

local function add_idempotency(entry, id, reply)
  local key = prefix .. ':idempotency:' .. entry.id
  redis.call('HSET', key, 'body_hash', entry.body_hash, 'job_id', id, 'reply', reply)
  redis.call('PEXPIRE', key, entry.ttl_ms)
end
