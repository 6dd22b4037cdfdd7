-- Reads a pool at one moment, for the scheduler. First it does everything that is due: delayed jobs begin to wait, and
-- expired workers are removed. Allocations are revoked if their claim timed out or their leader is draining. A pool
-- without workers and jobs is removed, because clients may choose any name of a pool.
--
-- call: pool, limit (of jobs that are moved per call)
-- Returns: ok, version, now (ms), {worker…}, {job…}, [job id, JSON…] (waiting and delayed jobs), [project + ' ' +
-- group, ms…]
--          worker: id, slots, draining (1), group, memory of its smallest GPU (bytes or ''), topology (JSON)
--          job that holds slots: id, claimed (1), then its HOLDER_FIELDS
--- @flags allow-oom

local key = prefix .. ':pool:' .. call.pool
local now = now_ms()
local at_most_now = string.format('%d', now)

for _, id in ipairs(redis.call('ZRANGEBYSCORE', key .. ':workers', '-inf', at_most_now)) do
  forget_worker(call.pool, id)
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', key .. ':delayed', '-inf', at_most_now, 'LIMIT', 0, call.limit)) do
  local job = load_job(id)
  if job then
    start_waiting(id, job)
  else
    redis.call('ZREM', key .. ':delayed', id)
  end
end

local pool = load_pool(call.pool, now)
local moved = false
for _, id in ipairs(redis.call('SMEMBERS', key .. ':holders')) do
  local fields = redis.call('HMGET', job_key(id), 'allocated_to', 'allocated_until')
  if fields[1] and fields[1] ~= '' then
    local leader = pool.by_id[fields[1]]
    if tonumber(fields[2]) <= now or not leader or leader.draining then
      local job = load_job(id)
      drop_allocation(id, job)
      redis.call('HINCRBY', job_key(id), 'attempt', 1)
      start_waiting(id, job, tonumber(job.queued_since))
      moved = true
    end
  elseif not fields[1] then
    redis.call('SREM', key .. ':holders', id)
  end
end
if moved then
  pool = load_pool(call.pool, now)
end

local workers, jobs = {}, {}
for _, worker in ipairs(pool.workers) do
  local gpu_bytes = worker.gpu_bytes and string.format('%d', worker.gpu_bytes) or ''
  local draining = worker.draining and 1 or 0
  workers[#workers + 1] = { worker.id, worker.slots, draining, worker.group, gpu_bytes, worker.topology }
end
for _, holder in ipairs(pool.holders) do
  local entry = { holder.id, (holder.job.allocated_to or '') == '' and 1 or 0 }
  for i, field in ipairs(HOLDER_FIELDS) do
    entry[i + 2] = holder.job[field] or ''
  end
  jobs[#jobs + 1] = entry
end
if #workers + #jobs == 0 and redis.call('EXISTS', key .. ':holders', key .. ':waiting', key .. ':delayed') == 0 then
  redis.call('DEL', key .. ':version', key .. ':last-allocations')
  redis.call('SREM', prefix .. ':pools', call.pool)
end
return {
  'ok',
  redis.call('GET', key .. ':version') or '0',
  string.format('%d', now),
  workers,
  jobs,
  redis.call('HGETALL', key .. ':waiting-jobs'),
  redis.call('ZRANGE', key .. ':last-allocations', 0, -1, 'WITHSCORES'),
}
