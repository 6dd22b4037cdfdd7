-- Changes of state and of who holds the job. Needs include/job.lua.

local function queue_attempt(id, attempt, pool)
  redis.call('XADD', prefix .. ':outbox', '*', 'job_id', id, 'attempt', attempt, 'pool', pool)
end

-- Moves `job` (a loaded record) to `to`: record, history, index and event in one place. `reason` may be nil.
local function set_state(id, job, to, reason, at)
  local key = job_key(id)
  local json_reason = reason or cjson.null
  redis.call('HSET', key, 'state', to, 'reason', reason or '', 'updated_at', at)
  redis.call('HINCRBY', key, 'state_version', 1)
  redis.call('RPUSH', key .. ':history', cjson.encode({ state = to, reason = json_reason, at = at }))
  redis.call('ZREM', prefix .. ':jobs:state:' .. job.state, id)
  redis.call('ZADD', prefix .. ':jobs:state:' .. to, 0, id)
  append_event(id, 'job.state', at, cjson.encode({ from = job.state, to = to, reason = json_reason }))
  redis.call('PUBLISH', key .. ':control', to)
  job.state = to
end

-- Takes the lease away from whoever has it. The epoch's number stays, but no worker holds it any more.
local function drop_lease(id)
  redis.call('HSET', job_key(id), 'worker', '', 'lease_until', '0', 'world_size', '')
  redis.call('ZREM', prefix .. ':leases', id)
end

-- Ends an attempt without ending the job. A job that is pausing becomes paused even when `to` is 'queued'; one that
-- is cancelling stays so and is queued as it is: the next attempt finds the wish and carries it out.
local function release(id, job, to, reason, at)
  drop_lease(id)
  if job.state == 'pausing' then
    to = 'paused'
  end
  if job.state ~= 'cancelling' then
    if to == 'paused' and job.state ~= 'pausing' then
      set_state(id, job, 'pausing', reason, at)
    end
    set_state(id, job, to, reason, at)
  end
  if job.state ~= 'paused' then
    local attempt = redis.call('HINCRBY', job_key(id), 'attempt', 1)
    queue_attempt(id, attempt, job.pool)
  end
end
