-- Restores a job that Redis lost, with its checkpoints; a job that is neither final nor paused is queued.
--
-- call: job_id, record {field: text}, history [JSON], checkpoints [{id, document (JSON)}], hold_ms, at,
--       reply (JSON of the first reply to its creation), idempotency {id, body_hash, ttl_ms} or absent
-- Returns: ok, '1'     restored
--          ok, '0'     the job exists already, or is being deleted: nothing is changed
-- Events: job.recovered

local key = job_key(call.job_id)
if redis.call('EXISTS', key) == 1 or redis.call('HEXISTS', prefix .. ':deleted-jobs', call.job_id) == 1 then
  return { 'ok', '0' }
end
add_record(call.job_id, call.record)
change_version(call.job_id)
for _, change in ipairs(call.history) do
  redis.call('RPUSH', key .. ':history', change)
end
for _, checkpoint in ipairs(call.checkpoints) do
  add_checkpoint(call.job_id, checkpoint.id, checkpoint.document)
end
local data = { state = call.record.state, checkpoints = #call.checkpoints }
append_event(call.job_id, 'job.recovered', call.at, cjson.encode(data))
hold_base(call.job_id, call.record)
if call.record.final ~= '1' then
  start_forwards(call.job_id, call.record.forwards)
  hold_sources(call.job_id, call.record, call.hold_ms)
  if call.record.state == 'queued' then
    queue_attempt(call.job_id, call.record)
  end
end
-- A repetition of the request after the loss of its job may have created another job.
if call.idempotency and redis.call('EXISTS', prefix .. ':idempotency:' .. call.idempotency.id) == 0 then
  add_idempotency(call.idempotency, call.job_id, call.reply)
end
return { 'ok', '1' }
