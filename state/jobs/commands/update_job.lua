-- Changes the mutable parts of a job's document at a user's request.
--
-- call: job_id, at, if_versions [the state_version that the change is based on], spec (JSON), fields {field: text},
--       changed [names of the changed parts]
-- Returns: ok, record, history
-- Errors: job_not_found, job_final (changes of anything but name, labels and notes), version_mismatch,
--         ranks_quota_exceeded
-- Events: job.updated

local job, problem = load_called_job()
if problem then
  return problem
end
for _, name in ipairs(call.changed) do
  if job.final == '1' and name ~= 'labels' and name ~= 'name' and name ~= 'notes' then
    return failure('job_final', 'the job has ended: ' .. job.state .. '; only its name, labels and notes can be changed')
  end
end
local more = tonumber(call.fields.requested_ranks) - tonumber(job.requested_ranks)
local refused = ASKING[job.state] and ranks_error(job.project, more)
if refused then
  return refused
end
local key = job_key(call.job_id)
redis.call('HSET', key, 'spec', call.spec, 'updated_at', call.at)
local jobs = index_key(job.project, 'jobs:')
for _, index in ipairs(cjson.decode(job.indexes)) do
  redis.call('ZREM', jobs .. index, call.job_id)
end
for _, index in ipairs(cjson.decode(call.fields.indexes)) do
  redis.call('ZADD', jobs .. index, 0, call.job_id)
end
for field, value in pairs(call.fields) do
  redis.call('HSET', key, field, value)
  job[field] = value
end
count_ranks(call.job_id, job.project, job.state)
change_version(call.job_id)
wait_anew(call.job_id, job)
append_event(call.job_id, 'job.updated', call.at, cjson.encode({ changed = call.changed }))
redis.call('PUBLISH', key .. ':control', 'updated')
return { 'ok', unpack(job_reply(call.job_id)) }
