-- How a new record comes in: the hash and the indexes. Needs include/job.lua.

-- fields {field: text}, labels [text]. The job must not exist yet.
local function add_record(id, fields, labels)
  for field, value in pairs(fields) do
    redis.call('HSET', job_key(id), field, value)
  end
  redis.call('ZADD', prefix .. ':jobs', 0, id)
  redis.call('ZADD', prefix .. ':jobs:state:' .. fields.state, 0, id)
  for _, label in ipairs(labels) do
    redis.call('ZADD', prefix .. ':jobs:label:' .. label, 0, id)
  end
end

-- While it lives, what it needs can't be deleted.
local function hold_sources(id, dataset_id, model_ids)
  redis.call('SADD', prefix .. ':dataset:' .. dataset_id .. ':jobs', id)
  for _, model_id in ipairs(model_ids) do
    redis.call('SADD', prefix .. ':model:' .. model_id .. ':jobs', id)
  end
end

local function add_idempotency(entry, id, reply)
  local key = prefix .. ':idempotency:' .. entry.id
  redis.call('HSET', key, 'body_hash', entry.body_hash, 'job_id', id, 'reply', reply)
  redis.call('PEXPIRE', key, entry.ttl_ms)
end
