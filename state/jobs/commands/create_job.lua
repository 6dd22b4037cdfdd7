-- Creates a job atomically: record, indexes, first event, idempotency entry and outbox entry.
--
-- call: job_id, record {field: text}, reply (JSON of the first reply),
--       trace_id (hex) or absent, at, hold_ms, idempotency {id, body_hash, ttl_ms} or absent
-- Returns: ok, reply, '0'        created
--          ok, reply, '1'        the idempotency key made a job before: that job's first reply
--          ok, reply, '0'        the job id exists already (a repeated call): nothing is changed
-- Errors: jobs_quota_exceeded, ranks_quota_exceeded, storage_quota_exceeded, idempotency_key_reused, dataset_not_found,
--         model_not_found, checkpoint_not_found
-- Events: job.created

local key = job_key(call.job_id)
local idem_key = call.idempotency and (prefix .. ':idempotency:' .. call.idempotency.id)

if idem_key then
  local known = redis.call('HMGET', idem_key, 'body_hash', 'job_id', 'reply')
  if known[1] and known[1] ~= call.idempotency.body_hash then
    return failure('idempotency_key_reused', 'the idempotency key was used with another request')
  end
  if known[1] then
    return { 'ok', known[3], known[2] == call.job_id and '0' or '1' }
  end
end
if redis.call('EXISTS', key) == 1 then
  return { 'ok', call.reply, '0' }
end
local missing = missing_source(call.record, true)
if missing then
  return missing
end

local project = call.record.project
local ranks = tonumber(call.record.requested_ranks)
local refused = jobs_error(project) or ranks_error(project, ranks) or storage_error(project, 0)
if refused then
  return refused
end

add_usage(project, 'jobs', 1)
add_record(call.job_id, call.record)
local created = { state = call.record.state, reason = cjson.null, at = call.at }
redis.call('RPUSH', key .. ':history', cjson.encode(created))
hold_sources(call.job_id, call.record, call.hold_ms)
hold_base(call.job_id, call.record)
append_event(call.job_id, 'job.created', call.at, call.trace_id and cjson.encode({ trace_id = call.trace_id }) or '{}')
queue_attempt(call.job_id, call.record)
start_forwards(call.job_id, call.record.forwards)
-- The first such text is the job's own field (record.ts writes it before the document).
local position = '"queue_position":' .. queue_position(call.job_id, call.record.pool)
local reply = string.gsub(call.reply, '"queue_position":null', position, 1)
if idem_key then
  add_idempotency(call.idempotency, call.job_id, reply)
end
return { 'ok', reply, '0' }
