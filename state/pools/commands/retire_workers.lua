-- Keeps new work away from all workers of a machine that is to be ended, if nothing runs on any of them: all or none.
--
-- call: worker_ids [text]
-- Returns: ok, worker id…     those that are busy; with none of them all are retiring from now on
--- @include job
--- @include attempt
--- @include use
--- @include state
--- @include pool

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
    if leads[id] or (worker and worker.used > 0) then
      reply[#reply + 1] = id
    end
  end
end
if #reply == 1 then
  for _, id in ipairs(call.worker_ids) do
    -- One that is gone must not come back as a record of nothing else.
    if redis.call('EXISTS', prefix .. ':worker:' .. id) == 1 then
      redis.call('HSET', prefix .. ':worker:' .. id, 'retiring', '1')
      change_pool(redis.call('HGET', prefix .. ':worker:' .. id, 'pool'))
    end
  end
end
return reply
