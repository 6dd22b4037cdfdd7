-- Renews a worker's hold on requests for samples.
--
-- call: pool, worker, ids, hold_ms
-- Returns: ok, id…     those that the worker has no more: nobody waits for them, or another worker has them
--- @flags allow-oom

local until_ms = string.format('%d', now_ms() + call.hold_ms)
local reply = { 'ok' }
for _, id in ipairs(call.ids) do
  local known = redis.call('HMGET', sample_key(id), 'worker', 'caller')
  if known[1] ~= call.worker then
    reply[#reply + 1] = id
  elseif redis.call('EXISTS', caller_key(known[2])) == 0 then
    forget_sample(id)
    reply[#reply + 1] = id
  else
    redis.call('ZADD', taken_key(call.pool), until_ms, id)
    keep_sample(id, call.pool)
  end
end
return reply
