-- Reads pools at one moment: live workers, jobs that hold placements, and waiting jobs (including delayed ones, which
-- will need a worker).
--
-- call: pool (absent: all that have a worker or a job)
-- Returns: ok, {name, running, waiting, {pair of workers and job that avoids it (JSON), until (ms)…},
--          {record (JSON), seen_at (ms), used slots, draining (1), retiring (1)}…}…     pools and workers by name
--- @flags no-writes

local names = call.pool and { call.pool } or redis.call('SMEMBERS', prefix .. ':pools')
table.sort(names)
local now = now_ms()
local reply = { 'ok' }
for _, name in ipairs(names) do
  local pool = load_pool(name, now)
  table.sort(pool.workers, function(a, b)
    return a.id < b.id
  end)
  local key = prefix .. ':pool:' .. name
  local waiting = redis.call('ZCARD', key .. ':waiting') + redis.call('ZCARD', key .. ':delayed')
  local avoided = redis.call('ZRANGEBYSCORE', key .. ':avoided', '(' .. string.format('%d', now), '+inf', 'WITHSCORES')
  local entry = { name, #pool.holders, waiting, avoided }
  for _, worker in ipairs(pool.workers) do
    local known = redis.call('HMGET', prefix .. ':worker:' .. worker.id, 'record', 'seen_at', 'retiring')
    entry[#entry + 1] = { known[1], known[2], worker.used, worker.draining and 1 or 0, known[3] == '1' and 1 or 0 }
  end
  if call.pool or #pool.workers + #pool.holders + waiting > 0 then
    reply[#reply + 1] = entry
  end
end
return reply
