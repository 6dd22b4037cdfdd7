-- Ends the attempt of a worker. A job that is cancelling ends with it. With the reason 'waiting_for_capacity', a job
-- that moves gets the slots that are reserved for it, and the reason is 'moved'. With the reason 'idle', a session that
-- has a call without a result is queued in place of paused, and one that a user pauses has the user's reason.
--
-- call: job_id, execution, to 'queued' | 'paused', reason (may be absent), at, delay_ms (absent: the next attempt is
-- due at once),
--       avoid {pair [worker id, worker id], ms} or absent: for `ms` the job is not placed on both,
--       preempted (true: counted; a job that exceeds its limit of preemptions is paused)
-- Returns: ok, record, history     also when this execution was released before and no worker has claimed the job since
-- Errors: job_not_found, job_final, stale_epoch
-- Events: job.state
--- @flags allow-oom

local AVOIDED_KEPT = 20

-- Records for a while that two workers could not connect to each other. The newest pairs are kept. The pool's list is
-- for display.
local function avoid_pair(id, job, avoid)
  local now = now_ms()
  local kept = { { pair = avoid.pair, ['until'] = now + avoid.ms } }
  for _, entry in ipairs((job.avoided or '') ~= '' and cjson.decode(job.avoided) or {}) do
    if entry['until'] > now and #kept < AVOIDED_KEPT then
      kept[#kept + 1] = entry
    end
  end
  job.avoided = cjson.encode(kept)
  redis.call('HSET', job_key(id), 'avoided', job.avoided)
  local list = prefix .. ':pool:' .. job.pool .. ':avoided'
  redis.call('ZREMRANGEBYSCORE', list, '-inf', string.format('%d', now))
  redis.call('ZADD', list, string.format('%d', now + avoid.ms), cjson.encode({ avoid.pair[1], avoid.pair[2], id }))
  if redis.call('PTTL', list) < avoid.ms then
    redis.call('PEXPIRE', list, string.format('%d', avoid.ms))
  end
end

-- Hands the job to the leader of its move. The allocation lasts as long as the lease would have.
local function transfer(id, job, placements, until_ms)
  if redis.call('ZREM', waiting_key(job), id) == 1 then
    allocate(id, job, placements, cjson.decode(placements)[1].worker_id, until_ms)
    change_pool_version(job.pool)
  end
end

-- Returns whether a call of a session waits for its result.
local function has_pending_call(id)
  local counters = redis.call('HMGET', job_key(id) .. ':calls', 'appended', 'answered')
  return tonumber(counters[1] or 0) > tonumber(counters[2] or 0)
end

local job = load_job(call.job_id)
local repeated = job and job.final ~= '1' and job.worker == '' and job.execution == call.execution
if not repeated then
  local refused = fence(job, call.execution)
  if refused then
    return refused
  end
  local to, reason = call.to, call.reason
  if reason == 'idle' and job.state == 'pausing' then
    reason = job.reason
  elseif reason == 'idle' and has_pending_call(call.job_id) then
    to = 'queued'
  end
  local move = reason == 'waiting_for_capacity' and job.move or ''
  if move ~= '' then
    reason = 'moved'
  elseif call.preempted then
    local preemptions = redis.call('HINCRBY', job_key(call.job_id), 'preemptions', 1)
    if job.max_preemptions ~= '' and preemptions > tonumber(job.max_preemptions) then
      to, reason = 'paused', 'preemption_limit'
    end
  end
  if reason == 'node_lost' then
    count_lost_worker(call.job_id)
  end
  if call.avoid then
    avoid_pair(call.job_id, job, call.avoid)
  end
  local lease_until = tonumber(job.lease_until)
  give_back(call.job_id, job, to, reason, call.at, call.delay_ms)
  if move ~= '' then
    transfer(call.job_id, job, move, lease_until)
  end
end
return { 'ok', unpack(job_reply(call.job_id)) }
