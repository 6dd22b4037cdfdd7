-- Tells a waiting job why no machines are requested for it. Jobs that no longer wait get no event.
--
-- call: job_id, reason, message, at
-- Returns: ok
-- Events: job.waiting

if redis.call('HGET', job_key(call.job_id), 'state') == 'queued' then
  append_event(call.job_id, 'job.waiting', call.at, cjson.encode({ reason = call.reason, message = call.message }))
end
return { 'ok' }
