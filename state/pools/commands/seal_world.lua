-- Makes a plan the world of a job, under the leader's execution, and notifies its members.
--
-- call: job_id, execution, world_id, plan (JSON), members [worker ids]
-- Returns: ok     also when this world was sealed before
-- Errors: job_not_found, job_final, stale_epoch
-- Channels: <prefix>:worker:<id>:worlds of each member

local refused = fence(load_job(call.job_id), call.execution)
if refused then
  return refused
end
local key = world_key(call.job_id)
if redis.call('HGET', key, 'id') == call.world_id then
  return { 'ok' }
end
forget_world(call.job_id)
redis.call(
  'HSET',
  key,
  'id',
  call.world_id,
  'execution',
  call.execution,
  'plan',
  call.plan,
  'members',
  cjson.encode(call.members)
)
redis.call('PEXPIRE', key, WORLD_TTL_MS)
for _, worker in ipairs(call.members) do
  redis.call('SADD', member_key(worker), call.job_id)
  redis.call('PEXPIRE', member_key(worker), WORLD_TTL_MS)
  redis.call('PUBLISH', member_key(worker), call.job_id)
end
return { 'ok' }
