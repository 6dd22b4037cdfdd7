-- Sets the final state.
--
-- call: job_id, execution (absent: only a job that no worker holds), state, from [states that may become `state`],
--       reason (may be absent), failure (JSON or ''), export (JSON or ''), at
-- Returns: ok, 'done', record, history     also when the job has this final state already
--          ok, 'busy'                      no execution was given, but a worker holds the job
-- Errors: job_not_found, job_final (another final state), stale_epoch, invalid_transition
-- Events: job.state
--- @flags allow-oom

local function done()
  local reply = job_reply(call.job_id)
  return { 'ok', 'done', reply[1], reply[2] }
end

local job = load_job(call.job_id)
if job and job.final == '1' and job.state == call.state then
  return done()
end
-- Without an execution no worker may hold the job. The fence then compares nothing, but still detects a missing or
-- final job.
local refused = fence(job, call.execution or '')
if refused and (call.execution or refused[2] ~= 'stale_epoch') then
  return refused
end
if not call.execution and job.state ~= 'queued' and job.state ~= 'paused' then
  return { 'ok', 'busy' }
end
local allowed = false
for _, state in ipairs(call.from) do
  allowed = allowed or state == job.state
end
if not allowed then
  return failure('invalid_transition', 'a job cannot go from ' .. job.state .. ' to ' .. call.state)
end

finish(call.job_id, job, call.state, call.reason, call.failure, call.export, call.at)
return done()
