-- Stops new work on all workers of a machine that will be terminated, if none of them is busy or `busy` is set: all or
-- none.
--
-- call: worker_ids [text], busy (boolean)
-- Returns: ok, worker id…     the busy workers; without any, all are retiring from now on

local now = now_ms()
local leads = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. ':leases', '(' .. string.format('%d', now), '+inf')) do
  leads[redis.call('HGET', job_key(id), 'worker')] = true
end

local reply = { 'ok' }
local pools = {}
for _, id in ipairs(call.worker_ids) do
  local name = redis.call('HGET', prefix .. ':worker:' .. id, 'pool')
  if name then
    pools[name] = pools[name] or load_pool(name, now)
    local worker = pools[name].by_id[id]
    if not call.busy and (leads[id] or (worker and worker.used > 0)) then
      reply[#reply + 1] = id
    end
  end
end
if #reply == 1 then
  for _, id in ipairs(call.worker_ids) do
    -- A worker that is gone must not get a record of this field alone.
    if redis.call('EXISTS', prefix .. ':worker:' .. id) == 1 then
      redis.call('HSET', prefix .. ':worker:' .. id, 'retiring', '1')
      change_pool(redis.call('HGET', prefix .. ':worker:' .. id, 'pool'))
    end
  end
end
return reply
