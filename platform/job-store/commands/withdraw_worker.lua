-- A worker leaves: nothing is reserved on it any more.
--
-- call: worker_id
-- Returns: ok     also for a worker that is not known
--- @include job

local key = prefix .. ':worker:' .. call.worker_id
local pool = redis.call('HGET', key, 'pool')
if pool then
  redis.call('ZREM', prefix .. ':pool:' .. pool .. ':workers', call.worker_id)
  redis.call('DEL', key)
end
return { 'ok' }
