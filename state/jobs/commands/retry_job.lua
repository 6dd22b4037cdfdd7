-- Queues a failed job as its next attempt. No other command moves a job out of a final state.
--
-- call: job_id, at, hold_ms, if_versions [state_version] or absent
-- Returns: ok, record, history
-- Errors: jobs_quota_exceeded, ranks_quota_exceeded, storage_quota_exceeded, job_not_found, invalid_state,
-- version_mismatch,
--         dataset_not_found, model_not_found, checkpoint_not_found
-- Events: job.state

local job, problem = load_called_job()
if problem then
  return problem
end
if job.state ~= 'failed' then
  return failure('invalid_state', 'only a failed job can be retried; the job is ' .. job.state)
end
local project = job.project
local refused = jobs_error(project) or ranks_error(project, tonumber(job.requested_ranks)) or storage_error(project, 0)
if refused then
  return refused
end
local missing = missing_source(job, job.latest_checkpoint == '')
if missing then
  return missing
end
hold_sources(call.job_id, job, call.hold_ms)
redis.call('HSET', job_key(call.job_id), 'final', '', 'failure', '', 'error_count', '0')
begin_anew(call.job_id, job, call.at)
start_forwards(call.job_id, job.forwards)
return { 'ok', unpack(job_reply(call.job_id)) }
