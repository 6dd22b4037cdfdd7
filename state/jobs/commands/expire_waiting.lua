-- Stops jobs that have waited for slots longer than their limit.
--
-- call: limit, at
-- Returns: ok, [job id], [job id]     paused jobs, and jobs that the caller must finish as cancelled
-- Events: job.state

local due = string.format('%d', now_ms())
local paused, cancel = {}, {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. ':wait-deadlines', '-inf', due, 'LIMIT', 0, call.limit)) do
  local job = load_job(id)
  if not job or job.state ~= 'queued' then
    redis.call('ZREM', prefix .. ':wait-deadlines', id)
  elseif job.on_limit == 'cancel' then
    cancel[#cancel + 1] = id
  else
    set_state(id, job, 'paused', 'budget_reached', call.at)
    paused[#paused + 1] = id
  end
end
return { 'ok', paused, cancel }
