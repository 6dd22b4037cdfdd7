-- Gives a running job the slots of its next generation of ranks, if the pool has not changed since they were chosen.
--
-- call: job_id, execution, version, placements (JSON, at least one)
-- Returns: ok, '1'     done
--          ok, '0'     the pool has changed
-- Errors: job_not_found, job_final, stale_epoch

local job = load_job(call.job_id)
local refused = fence(job, call.execution)
if refused then
  return refused
end
local key = prefix .. ':pool:' .. job.pool
if (redis.call('GET', key .. ':version') or '0') ~= call.version then
  return { 'ok', '0' }
end
account(call.job_id, job)
redis.call(
  'HSET',
  job_key(call.job_id),
  'placements',
  call.placements,
  'preemption_request',
  '',
  'preemptor',
  '',
  'move',
  '',
  'placed_at',
  string.format('%d', now_ms())
)
redis.call('SADD', key .. ':holders', call.job_id)
set_attempt_workers(call.job_id, job.worker, cjson.decode(call.placements))
change_pool(job.pool)
return { 'ok', '1' }
