-- Appends one event of a worker.
--
-- call: job_id, execution, type, data (JSON), at, root_cause (true: the event names the cause of the attempt's failure,
-- past or imminent)
-- Returns: ok, seq
-- Errors: job_not_found, job_final, stale_epoch
-- Events: the given one

local refused = fence(load_job(call.job_id), call.execution)
if refused then
  return refused
end
if call.root_cause then
  -- Stored as text: decoding would turn an empty list into an empty object.
  change_attempt(call.job_id, { root_cause = call.data })
end
return { 'ok', append_event(call.job_id, call.type, call.at, call.data) }
