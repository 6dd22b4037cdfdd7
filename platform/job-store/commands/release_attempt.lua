-- A worker gives its attempt back without ending the job.
--
-- call: job_id, epoch, to 'queued' | 'paused', reason (may be absent), at
-- Returns: ok, record, history     also when this epoch was released before and nobody took the job since
-- Errors: job_not_found, job_final, stale_epoch
-- Events: job.state
--- @include job
--- @include state

local job = load_job(call.job_id)
local repeated = job and job.final ~= '1' and job.worker == '' and tonumber(job.epoch) == call.epoch
if not repeated then
  local refused = fence(job, call.epoch)
  if refused then
    return refused
  end
  release(call.job_id, job, call.to, call.reason, call.at)
end
return { 'ok', unpack(job_reply(call.job_id)) }
