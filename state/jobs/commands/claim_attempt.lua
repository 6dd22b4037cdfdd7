-- Takes the lease on an attempt, with its allocated slots, and begins a new epoch and execution.
--
-- call: job_id, attempt, worker, token (random, unique per claim), lease_ms, at, price_per_rank_hour (absent: 0),
--       allocated (true: with the slots of the allocation, which must be for this worker; absent: without slots)
-- Returns: ok, record, history
-- Errors: job_not_found, job_final, attempt_superseded (or the allocation has ended), job_paused,
--         lease_held (the message is the time in ms until the lease runs out)
-- Events: attempt.started, job.state

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
local placements = '[]'
if call.allocated then
  if job.allocated_to ~= call.worker or tonumber(job.allocated_until) <= now then
    return failure('attempt_superseded', 'its slots are not allocated to ' .. call.worker)
  end
  placements = job.placements
  job.allocated_to = ''
  redis.call('HSET', key, 'allocated_to', '', 'allocated_until', '0')
end
if job.worker ~= '' and job.worker ~= call.worker then
  count_lost_worker(call.job_id)
end
account(call.job_id, job)
redis.call(
  'HSET',
  key,
  'accounted_at',
  string.format('%d', now),
  'price_per_rank_hour',
  call.price_per_rank_hour or 0
)
local lease_until = string.format('%d', now + call.lease_ms)
local epoch = redis.call('HINCRBY', key, 'epoch', 1)
local execution = epoch .. '-' .. call.token
redis.call('HSET', key, 'execution', execution, 'worker', call.worker, 'lease_until', lease_until, 'batch', '0', 'world_size', '')
redis.call('ZADD', prefix .. ':leases', lease_until, call.job_id)
stop_waiting(call.job_id, job)
begin_attempt(call.job_id, { epoch = epoch, attempt = call.attempt }, call.at)
set_attempt_workers(call.job_id, call.worker, cjson.decode(placements))
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
local reply = job_reply(call.job_id)
redis.call('HSET', key, 'lost_workers_before', redis.call('HGET', key, 'lost_workers') or '0')
return { 'ok', unpack(reply) }
