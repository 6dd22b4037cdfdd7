-- Applies the scheduler's decision for a pool atomically, if the pool has not changed since its snapshot.
--
-- call: pool, version, claim_ms (timeout of an allocation's claim), at,
--       starts [{job_id, worker (the leader), placements (JSON), granted_priority, group}], growth [{job_id, placements
--       (JSON)}], requests [{job_id, ranks, for_job}], withdrawn [job_id], waiting [job_id] (jobs whose record states
--       that they wait for slots)
-- Returns: ok, '1'     applied
--          ok, '0'     the pool has changed
-- Events: none; outbox entries for the jobs that begin

local key = prefix .. ':pool:' .. call.pool
if (redis.call('GET', key .. ':version') or '0') ~= call.version then
  return { 'ok', '0' }
end
local now = now_ms()

-- Retention of fair-share times: a project without an allocation for this long has waited longest.
local SERVED_KEPT_MS = 86400000

for _, start in ipairs(call.starts) do
  local job = load_job(start.job_id)
  if job and redis.call('ZREM', key .. ':waiting', start.job_id) == 1 then
    allocate(start.job_id, job, start.placements, start.worker, now + call.claim_ms)
    redis.call('HSET', job_key(start.job_id), 'granted_priority', start.granted_priority)
    redis.call('ZADD', key .. ':last-allocations', string.format('%d', now), job.project .. ' ' .. start.group)
    redis.call('ZREMRANGEBYSCORE', key .. ':last-allocations', '-inf', string.format('%d', now - SERVED_KEPT_MS))
    withdraw_requests(start.job_id, job)
  end
end
for _, growth in ipairs(call.growth) do
  local job = load_job(growth.job_id)
  if job and job.worker ~= '' then
    account(growth.job_id, job)
    redis.call('HSET', job_key(growth.job_id), 'placements', growth.placements, 'placed_at', string.format('%d', now))
    redis.call('PUBLISH', job_key(growth.job_id) .. ':control', 'placements')
  end
end

-- Sets the preemption request of a job. The end of a job does not change the version of its pool, so the job may be
-- deleted by now.
local function set_request(id, ranks, for_job)
  if redis.call('EXISTS', job_key(id)) == 1 then
    redis.call('HSET', job_key(id), 'preemption_request', ranks, 'preemptor', for_job)
    redis.call('PUBLISH', job_key(id) .. ':control', 'request')
  end
end

for _, request in ipairs(call.requests) do
  set_request(request.job_id, request.ranks, request.for_job)
end
for _, id in ipairs(call.withdrawn) do
  set_request(id, '', '')
end
for _, id in ipairs(call.waiting) do
  local fields = redis.call('HMGET', job_key(id), 'state', 'reason')
  if fields[1] == 'queued' and fields[2] == '' then
    redis.call('HSET', job_key(id), 'reason', 'waiting_for_capacity', 'updated_at', call.at)
  end
end
if #call.starts + #call.growth + #call.requests + #call.withdrawn > 0 then
  change_pool_version(call.pool)
end
return { 'ok', '1' }
