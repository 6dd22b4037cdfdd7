-- Reads the pools as they are at one moment: workers that are alive, jobs that hold places, jobs that wait.
--
-- call: pool (absent: all of them)
-- Returns: ok, {name, running, waiting, {record (JSON), seen_at (ms), used slots}…}…     pools and workers by name
--- @include job
--- @include state
--- @include places

local names = call.pool and { call.pool } or redis.call('SMEMBERS', prefix .. ':pools')
table.sort(names)
local now = now_ms()
local reply = { 'ok' }
for _, name in ipairs(names) do
  local pool = load_pool(name, now)
  table.sort(pool.workers, function(a, b)
    return a.id < b.id
  end)
  local entry = { name, #pool.holders, redis.call('ZCARD', prefix .. ':pool:' .. name .. ':waiting') }
  for _, worker in ipairs(pool.workers) do
    local known = redis.call('HMGET', prefix .. ':worker:' .. worker.id, 'record', 'seen_at')
    entry[#entry + 1] = { known[1], known[2], worker.used }
  end
  reply[#reply + 1] = entry
end
return reply
