-- Ends the attempts of workers whose lease has expired. Jobs that are cancelling end with them.
--
-- call: grace_ms, limit, at
-- Returns: ok, job id…   the released jobs
-- Events: job.state
--- @flags allow-oom

local due = string.format('%d', now_ms() - call.grace_ms)
local reply = { 'ok' }
for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. ':leases', '-inf', due, 'LIMIT', 0, call.limit)) do
  local job = load_job(id)
  if job then
    count_lost_worker(id)
    give_back(id, job, 'queued', 'heartbeat_lost', call.at)
    reply[#reply + 1] = id
  else
    redis.call('ZREM', prefix .. ':leases', id)
  end
end
return reply
