-- Keeps the lease of an epoch.
--
-- call: job_id, epoch, lease_ms
-- Returns: ok, state, epoch, save_requested, save_answered
-- Errors: job_not_found, job_final, stale_epoch
--- @include job

local job = load_job(call.job_id)
local refused = fence(job, call.epoch)
if refused then
  return refused
end
local lease_until = string.format('%d', now_ms() + call.lease_ms)
redis.call('HSET', job_key(call.job_id), 'lease_until', lease_until)
redis.call('ZADD', prefix .. ':leases', lease_until, call.job_id)
return { 'ok', job.state, job.epoch, job.save_requested or '0', job.save_answered or '0' }
