-- Carries out or records a user's request: pause, cancel, resume, checkpoint or resize.
--
-- call: job_id, action 'pause' | 'cancel' | 'resume' | 'checkpoint' | 'resize', ranks (of resume, may be absent; of
-- resize), at,
--       if_versions [state_version] or absent
-- Returns: ok, 'done', record, history     carried out, or recorded for the worker
--          ok, 'idle'                      cancel of a job that no worker holds: the caller must finish it
--                                          (finish_job.lua)
-- Errors: job_not_found, job_final, invalid_state, version_mismatch, ranks_quota_exceeded
-- Events: job.state; checkpoint.requested; resize.requested

local job, problem = load_called_job()
if problem then
  return problem
end
if job.final == '1' then
  return failure('job_final', 'the job has ended: ' .. job.state)
end

local key = job_key(call.job_id)
local idle = job.state == 'queued' or job.state == 'paused'

local function refuse(message)
  return failure('invalid_state', message .. ' a job that is ' .. job.state)
end

-- Records the request for the worker that holds the job, or will hold it.
local function request_state(state)
  if job.state ~= state then
    redis.call('HSET', key, 'over_budget', '')
    set_state(call.job_id, job, state, 'user_request', call.at)
  end
end

if call.action == 'pause' then
  if job.state == 'cancelling' then
    return refuse('cannot pause')
  elseif job.state == 'queued' or (job.state == 'paused' and job.reason == 'idle') then
    -- A session that a user pauses is not resumed by its next call.
    set_state(call.job_id, job, 'paused', 'user_request', call.at)
  elseif job.state ~= 'paused' then
    request_state('pausing')
  end
elseif call.action == 'cancel' then
  if idle then
    return { 'ok', 'idle' }
  end
  request_state('cancelling')
elseif call.action == 'checkpoint' then
  if idle or job.state == 'pausing' or job.state == 'cancelling' then
    return refuse('cannot take a checkpoint of')
  end
  local request = next_stamp(job.save_requested)
  redis.call('HSET', key, 'save_requested', request)
  append_event(call.job_id, 'checkpoint.requested', call.at, '{"request":' .. request .. '}')
  redis.call('PUBLISH', key .. ':control', job.state)
elseif call.action == 'resize' then
  if job.state == 'cancelling' then
    return refuse('cannot resize')
  elseif tonumber(job.requested_ranks) ~= call.ranks then
    local refused = ASKING[job.state] and ranks_error(job.project, call.ranks - tonumber(job.requested_ranks))
    if refused then
      return refused
    end
    redis.call('HSET', key, 'requested_ranks', call.ranks, 'updated_at', call.at)
    change_version(call.job_id)
    count_ranks(call.job_id, job.project, job.state)
    local change = { from = tonumber(job.requested_ranks), to = call.ranks }
    append_event(call.job_id, 'resize.requested', call.at, cjson.encode(change))
    redis.call('PUBLISH', key .. ':control', 'resize')
    -- A user's request for more ranks takes effect without the minimum time between two growths.
    redis.call('HSET', key, 'placed_at', '0')
    job.requested_ranks = call.ranks
    wait_anew(call.job_id, job)
  end
else
  if job.state ~= 'paused' then
    return refuse('cannot resume')
  end
  local refused = ranks_error(job.project, call.ranks or tonumber(job.requested_ranks))
  if refused then
    return refused
  end
  if call.ranks then
    redis.call('HSET', key, 'requested_ranks', call.ranks)
  end
  begin_anew(call.job_id, job, call.at)
end
local reply = job_reply(call.job_id)
return { 'ok', 'done', reply[1], reply[2] }
