-- Queues a job anew whose queue entry will never be looked at again.
--
-- call: job_id, attempt
-- Returns: ok, '1'     a next attempt was queued
--          ok, '0'     that entry was not needed: the job is gone, final, paused, held by a worker or at another attempt
-- Events: none, the job stays as it is
--- @include job
--- @include attempt
--- @include use
--- @include state

local job = load_job(call.job_id)
if not job or job.final == '1' or job.state == 'paused' or job.worker ~= '' or tonumber(job.attempt) ~= call.attempt then
  return { 'ok', '0' }
end
local attempt = redis.call('HINCRBY', job_key(call.job_id), 'attempt', 1)
-- It keeps its turn among those that wait, and what is left of its delay.
local due = tonumber(redis.call('ZSCORE', delayed_key(job), call.job_id) or 0)
put_in_outbox(call.job_id, attempt, job, math.max(0, due - now_ms()))
return { 'ok', '1' }
