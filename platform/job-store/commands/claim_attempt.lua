-- Takes the lease on an attempt and begins a new epoch.
--
-- call: job_id, attempt, worker, lease_ms, at
-- Returns: ok, record, history
-- Errors: job_not_found, job_final, attempt_superseded, job_paused,
--         lease_held (the message is the time in ms until the lease runs out)
-- Events: attempt.started, job.state
--- @include job
--- @include state

local job = load_job(call.job_id)
if not job then
  return failure('job_not_found', 'there is no job ' .. call.job_id)
end
if job.final == '1' then
  return failure('job_final', 'the job has ended: ' .. job.state)
end
if tonumber(job.attempt) ~= call.attempt then
  return failure('attempt_superseded', 'the job is at attempt ' .. job.attempt)
end
if job.state == 'paused' then
  return failure('job_paused', 'the job is paused')
end
local now = now_ms()
if job.worker ~= '' and job.worker ~= call.worker and tonumber(job.lease_until) > now then
  return failure('lease_held', tostring(tonumber(job.lease_until) - now))
end

local key = job_key(call.job_id)
local lease_until = string.format('%d', now + call.lease_ms)
local epoch = redis.call('HINCRBY', key, 'epoch', 1)
redis.call('HSET', key, 'worker', call.worker, 'lease_until', lease_until, 'batch', '0', 'world_size', '')
redis.call('ZADD', prefix .. ':leases', lease_until, call.job_id)
append_event(
  call.job_id,
  'attempt.started',
  call.at,
  cjson.encode({ attempt = call.attempt, epoch = epoch, worker = call.worker })
)
if job.state == 'queued' then
  set_state(call.job_id, job, 'provisioning', nil, call.at)
elseif job.state ~= 'pausing' and job.state ~= 'cancelling' and job.state ~= 'recovering' then
  set_state(call.job_id, job, 'recovering', 'worker_lost', call.at)
end
return { 'ok', unpack(job_reply(call.job_id)) }
