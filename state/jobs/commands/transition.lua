-- Moves a job to a state that is not final, for its worker.
--
-- call: job_id, execution, to, from [states that may become `to`], reason (may be absent), patch {field: text}, at,
--       working [states that yield to a pending request]
-- Returns: ok, record, history
-- Errors: job_not_found, job_final, stale_epoch, invalid_transition
-- Events: job.state

local function contains(list, value)
  for _, item in ipairs(list) do
    if item == value then
      return true
    end
  end
  return false
end

local job = load_job(call.job_id)
local refused = fence(job, call.execution)
if refused then
  return refused
end
local key = job_key(call.job_id)
local yields = (job.state == 'pausing' or job.state == 'cancelling') and contains(call.working, call.to)
if job.state ~= call.to and not yields and not contains(call.from, job.state) then
  return failure('invalid_transition', 'a job cannot go from ' .. job.state .. ' to ' .. call.to)
end

for field, value in pairs(call.patch) do
  redis.call('HSET', key, field, value)
end
if call.patch.world_size or call.to == 'starting' or call.to == 'recovering' then
  change_generation(call.job_id, tonumber(call.patch.world_size or ''), call.at)
end
if job.state == call.to then
  redis.call('HSET', key, 'reason', call.reason or '', 'updated_at', call.at)
elseif not yields then
  set_state(call.job_id, job, call.to, call.reason, call.at)
end
return { 'ok', unpack(job_reply(call.job_id)) }
