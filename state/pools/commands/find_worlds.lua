-- Returns the valid worlds that have a worker as a member.
--
-- call: worker
-- Returns: ok, {job_id, execution, plan}, …
--- @flags allow-oom

local found = { 'ok' }
local now = now_ms()
for _, id in ipairs(redis.call('SMEMBERS', member_key(call.worker))) do
  local job = load_job(id)
  local world = redis.call('HMGET', world_key(id), 'execution', 'plan')
  if not job or job.final == '1' or job.worker == '' or world[1] ~= job.execution then
    redis.call('SREM', member_key(call.worker), id)
  elseif tonumber(job.lease_until) > now then
    -- A world whose leader lost its lease is invalid, whether or not another worker has claimed the job.
    redis.call('PEXPIRE', world_key(id), WORLD_TTL_MS)
    redis.call('PEXPIRE', member_key(call.worker), WORLD_TTL_MS)
    found[#found + 1] = { id, world[1], world[2] }
  end
end
return found
