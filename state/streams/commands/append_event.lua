-- A worker appends one event.
--
-- call: job_id, execution, type, data (JSON), at, blame (true: it tells whose error has ended the attempt, or will)
-- Returns: ok, seq
-- Errors: job_not_found, job_final, stale_epoch
-- Events: the one that is given
--- @include job
--- @include attempt

local refused = fence(load_job(call.job_id), call.execution)
if refused then
  return refused
end
if call.blame then
  -- As text: an empty list in it would become an empty object.
  change_attempt(call.job_id, { blame = call.data })
end
return { 'ok', append_event(call.job_id, call.type, call.at, call.data) }
