-- Changes of a job's state, lease and queue position. Needs job.lua, attempt.lua, use.lua.

-- Maximum number of state changes in a job's history; the newest are kept.
local HISTORY_KEPT = 200
-- Waiting time that counts as one point of priority in the displayed queue order.
local AGEING_MS = 60000

-- Wakes the scheduler of a pool after a change of something that its decision depends on. The scheduler removes an
-- empty pool.
local function wake_scheduler(pool)
  redis.call('SADD', prefix .. ':pools', pool)
  redis.call('PUBLISH', prefix .. ':pools:changed', pool)
end

-- Changes the pool's version: decisions on older versions are refused from now on.
local function change_pool_version(pool)
  local key = prefix .. ':pool:' .. pool .. ':version'
  redis.call('SET', key, next_stamp(redis.call('GET', key)))
end

-- Changes the pool's version and wakes its scheduler.
local function change_pool(pool)
  change_pool_version(pool)
  wake_scheduler(pool)
end

local function delayed_key(job)
  return prefix .. ':pool:' .. job.pool .. ':delayed'
end

local function waiting_key(job)
  return prefix .. ':pool:' .. job.pool .. ':waiting'
end

local function limit_wait(id, job, since)
  local max_wait_ms = tonumber(job.max_wait_ms)
  if max_wait_ms then
    redis.call('ZADD', prefix .. ':wait-deadlines', string.format('%d', since + max_wait_ms), id)
  end
end

-- The lowest score is first in the queue: priority plus ageing. Ageing grows equally fast for all jobs, so it is left
-- out.
local function waiting_score(since, job)
  return math.floor(since / AGEING_MS) - tonumber(job.priority or 0)
end

local DEMAND_FIELDS = {
  'project',
  'priority',
  'ranks_min',
  'ranks_max',
  'ranks_multiple',
  'requested_ranks',
  'gpu_bytes',
  'avoided',
}

-- Writes the scheduler's data of a waiting job into one hash, from which the scheduler reads thousands of jobs at once.
-- A `delayed` job begins to wait at `since`. The data come from the current record, because `job` may have been read
-- before a change.
local function describe_waiting(id, job, since, delayed)
  local demand = { queued_at = since, delayed = delayed }
  for i, value in ipairs(redis.call('HMGET', job_key(id), unpack(DEMAND_FIELDS))) do
    demand[DEMAND_FIELDS[i]] = value or nil
  end
  redis.call('HSET', waiting_key(job) .. '-jobs', id, cjson.encode(demand))
end

-- Adds a job to those that wait for slots of its pool; a delayed job has waited since it was due. `since` (may be nil)
-- keeps its previous order.
local function start_waiting(id, job, since)
  local now = now_ms()
  since = since or math.min(now, tonumber(redis.call('ZSCORE', delayed_key(job), id) or now))
  job.queued_since = string.format('%d', since)
  redis.call('HSET', job_key(id), 'queued_since', job.queued_since)
  redis.call('ZADD', waiting_key(job), waiting_score(since, job), id)
  describe_waiting(id, job, since, false)
  redis.call('ZREM', delayed_key(job), id)
  limit_wait(id, job, since)
  wake_scheduler(job.pool)
end

-- Keeps a job out of the queue order until it is due. It still counts as waiting, and its maximum wait applies even if
-- no worker ever comes.
local function start_delay(id, job, delay_ms)
  local due = now_ms() + delay_ms
  redis.call('ZADD', delayed_key(job), string.format('%d', due), id)
  describe_waiting(id, job, due, true)
  limit_wait(id, job, due)
  wake_scheduler(job.pool)
end

-- Updates a job's queue position, its data for the scheduler and the deadline of its wait to its record `job`.
local function wait_anew(id, job)
  local due = redis.call('ZSCORE', delayed_key(job), id)
  local waits = redis.call('ZSCORE', waiting_key(job), id)
  if due or waits then
    local since = tonumber(due or job.queued_since)
    redis.call('ZREM', prefix .. ':wait-deadlines', id)
    limit_wait(id, job, since)
    describe_waiting(id, job, since, not waits)
    if waits then
      redis.call('ZADD', waiting_key(job), waiting_score(since, job), id)
    end
  end
  change_pool(job.pool)
end

-- Returns the ranks of the preemption request to a running job; nil without one. A request for a job that no longer
-- waits is withdrawn.
local function request_of(id, job)
  if (job.preemption_request or '') == '' then
    return nil
  end
  if redis.call('ZSCORE', waiting_key(job), job.preemptor) then
    return tonumber(job.preemption_request)
  end
  job.preemption_request, job.preemptor = '', ''
  redis.call('HSET', job_key(id), 'preemption_request', '', 'preemptor', '')
  redis.call('PUBLISH', job_key(id) .. ':control', 'request')
  return nil
end

-- Withdraws the preemption requests made for a job that no longer waits.
local function withdraw_requests(id, job)
  for _, holder in ipairs(redis.call('SMEMBERS', prefix .. ':pool:' .. job.pool .. ':holders')) do
    local fields = redis.call('HMGET', job_key(holder), 'preemption_request', 'preemptor')
    if fields[2] == id then
      request_of(holder, { pool = job.pool, preemption_request = fields[1], preemptor = fields[2] })
    end
  end
end

-- Takes back an allocation that no worker has claimed. Does nothing without one.
local function drop_allocation(id, job)
  if (job.allocated_to or '') == '' then
    return
  end
  job.allocated_to, job.placements = '', ''
  redis.call('HSET', job_key(id), 'allocated_to', '', 'allocated_until', '0', 'placements', '')
  redis.call('SREM', prefix .. ':pool:' .. job.pool .. ':holders', id)
  change_pool(job.pool)
end

local function stop_waiting(id, job)
  if redis.call('ZREM', waiting_key(job), id) == 1 then
    withdraw_requests(id, job)
    wake_scheduler(job.pool)
  end
  redis.call('HDEL', waiting_key(job) .. '-jobs', id)
  drop_allocation(id, job)
  redis.call('ZREM', delayed_key(job), id)
  redis.call('ZREM', prefix .. ':wait-deadlines', id)
end

-- Queues the attempt for the worker that leads its ranks.
local function put_in_outbox(id, attempt, job, worker)
  local fields = { 'job_id', id, 'attempt', attempt, 'worker_id', worker }
  local trace = redis.call('HGET', job_key(id), 'trace')
  if trace then
    fields[#fields + 1] = 'trace'
    fields[#fields + 1] = trace
  end
  redis.call('XADD', prefix .. ':outbox', '*', unpack(fields))
end

-- Allocates slots to the next attempt of a job that waits, or waited until now. `worker`, the leader of its ranks, has
-- to claim the attempt until `until_ms`. The caller has removed the job from the order of its pool, and changes the
-- pool's version.
local function allocate(id, job, placements, worker, until_ms)
  redis.call('HDEL', waiting_key(job) .. '-jobs', id)
  redis.call('ZREM', prefix .. ':wait-deadlines', id)
  redis.call(
    'HSET',
    job_key(id),
    'placements',
    placements,
    'allocated_to',
    worker,
    'allocated_until',
    string.format('%d', until_ms),
    'placed_at',
    string.format('%d', now_ms()),
    'preemption_request',
    '',
    'preemptor',
    ''
  )
  redis.call('SADD', prefix .. ':pool:' .. job.pool .. ':holders', id)
  put_in_outbox(id, redis.call('HGET', job_key(id), 'attempt'), job, worker)
end

-- Makes the next attempt of `job` (its record, state queued) due, now or in `delay_ms`.
local function queue_attempt(id, job, delay_ms)
  local delay = delay_ms or 0
  if delay > 0 then
    start_delay(id, job, delay)
  else
    start_waiting(id, job)
  end
end

-- Moves `job` (a loaded record) to `to`: record, history, index and event. `reason` may be nil.
local function set_state(id, job, to, reason, at)
  local key = job_key(id)
  local json_reason = reason or cjson.null
  redis.call('HSET', key, 'state', to, 'reason', reason or '', 'updated_at', at)
  change_version(id)
  redis.call('RPUSH', key .. ':history', cjson.encode({ state = to, reason = json_reason, at = at }))
  redis.call('LTRIM', key .. ':history', -HISTORY_KEPT, -1)
  local states = index_key(job.project, 'jobs:state:')
  redis.call('ZREM', states .. job.state, id)
  redis.call('ZADD', states .. to, 0, id)
  append_event(id, 'job.state', at, cjson.encode({ from = job.state, to = to, reason = json_reason }))
  redis.call('PUBLISH', key .. ':control', to)
  job.state = to
  count_ranks(id, job.project, to)
  if to ~= 'queued' then
    stop_waiting(id, job)
  end
end

-- Ends the lease and releases the placements. The execution stays in the record, but no worker holds it any more.
local function drop_lease(id, job)
  account(id, job)
  redis.call('HSET', job_key(id), 'worker', '', 'lease_until', '0', 'world_size', '', 'placements', '', 'move', '')
  redis.call('ZREM', prefix .. ':leases', id)
  redis.call('SREM', prefix .. ':pool:' .. job.pool .. ':holders', id)
  wake_scheduler(job.pool)
end

-- Counts workers lost with the job since its newest checkpoint, or since a user last queued it.
local function count_lost_worker(id)
  redis.call('HINCRBY', job_key(id), 'lost_workers', 1)
end

-- Ends an attempt without ending the job, which is not cancelling. A job that is pausing becomes paused even when `to`
-- is 'queued'. `delay_ms` may be nil.
local function release(id, job, to, reason, at, delay_ms)
  drop_lease(id, job)
  if job.state == 'pausing' then
    to = 'paused'
    if job.over_budget == '1' then
      reason = 'budget_reached'
    end
  end
  local lost = reason == 'heartbeat_lost'
  end_attempt(id, lost and 'lost' or (to == 'queued' and 'requeued' or to), reason, at)
  if to == 'paused' and job.state ~= 'pausing' then
    set_state(id, job, 'pausing', reason, at)
  end
  set_state(id, job, to, reason, at)
  if job.state ~= 'paused' then
    redis.call('HINCRBY', job_key(id), 'attempt', 1)
    queue_attempt(id, job, delay_ms)
  end
end

-- Queues the next attempt at a user's request. Resuming restores the job's whole budget.
local function begin_anew(id, job, at)
  redis.call(
    'HSET',
    job_key(id),
    'over_budget',
    '',
    'run_ms_before',
    job.run_ms or '0',
    'cost_before',
    job.cost or '0',
    'preemptions',
    '0',
    'lost_workers',
    '0',
    'lost_workers_before',
    '0'
  )
  redis.call('HINCRBY', job_key(id), 'attempt', 1)
  set_state(id, job, 'queued', 'user_request', at)
  queue_attempt(id, job)
end
