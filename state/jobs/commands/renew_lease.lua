-- Renews the lease of an execution and accounts for the job's usage. A job that has used up its budget is asked to
-- stop.
--
-- call: job_id, execution, lease_ms, at
-- Returns: ok, state, save_requested, save_completed, requested_ranks, overrides, preemption_request,
--          placements (JSON or ''), move (JSON or '')
-- Errors: job_not_found, job_final, stale_epoch
-- Events: job.state
--- @flags allow-oom

local job = load_job(call.job_id)
local refused = fence(job, call.execution)
if refused then
  return refused
end
account(call.job_id, job)
if job.state ~= 'pausing' and job.state ~= 'cancelling' and is_over_budget(job) then
  redis.call('HSET', job_key(call.job_id), 'over_budget', '1')
  local to = job.on_limit == 'cancel' and 'cancelling' or 'pausing'
  set_state(call.job_id, job, to, 'budget_reached', call.at)
end
local lease_until = string.format('%d', now_ms() + call.lease_ms)
redis.call('HSET', job_key(call.job_id), 'lease_until', lease_until)
redis.call('ZADD', prefix .. ':leases', lease_until, call.job_id)
return {
  'ok',
  job.state,
  job.save_requested or '0',
  job.save_completed or '0',
  job.requested_ranks,
  job.overrides,
  request_of(call.job_id, job) or '',
  job.placements,
  job.move or '',
}
