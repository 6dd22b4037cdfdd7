-- A worker appends one event.
--
-- call: job_id, epoch, type, data (JSON), at
-- Returns: ok, seq
-- Errors: job_not_found, job_final, stale_epoch
-- Events: the one that is given
--- @include job

local refused = fence(load_job(call.job_id), call.epoch)
if refused then
  return refused
end
return { 'ok', append_event(call.job_id, call.type, call.at, call.data) }
