-- Takes requests for samples for a worker: until it runs `max_running`, and at most `limit`. The project with the
-- fewest running requests of the worker comes first, then the model with the fewest, then the request that has waited
-- longest. Requests of workers that stopped renewing them wait again before; one that has lost too many is ended.
--
-- call: pool, worker, max_running, running {'<project> <model>' = requests that the worker runs}, hold_ms, limit,
--       max_lost, lost_reply (JSON: the message for a caller whose request lost too many workers)
-- Returns: ok, {id, payload, late ('1': no worker took it in time, or '')}…
-- Channels: <prefix>:pool:<pool>:samples, <prefix>:sample-caller:<caller>
--- @flags allow-oom

local now = now_ms()
for _, id in ipairs(redis.call('ZRANGEBYSCORE', taken_key(call.pool), '-inf', string.format('%d', now))) do
  if redis.call('EXISTS', sample_key(id)) == 0 then
    redis.call('ZREM', taken_key(call.pool), id)
  elseif redis.call('HINCRBY', sample_key(id), 'lost', 1) > call.max_lost then
    tell_caller(id, call.lost_reply)
    forget_sample(id)
  else
    return_sample(id)
  end
end

local usage = new_usage(call.max_running)
for queue, count in pairs(call.running) do
  count_request(usage, queue, count)
end
local queues, by_name = {}, {}
for _, member in ipairs(redis.call('ZRANGE', samples_key(call.pool), 0, -1)) do
  local name, id = string.match(member, '^(%S+ %S+) (%S+)$')
  if not by_name[name] then
    by_name[name] = { name = name, project = string.match(name, '^%S+'), ids = {}, taken = 0 }
    queues[#queues + 1] = by_name[name]
  end
  table.insert(by_name[name].ids, id)
end

-- Returns the queue whose request comes next; nil when none has room.
local function next_queue()
  local best, best_project, best_queue
  for _, queue in ipairs(queues) do
    if queue.taken < #queue.ids and has_room(usage, queue.name) then
      local of_project, of_queue = usage.by_project[queue.project] or 0, usage.by_queue[queue.name] or 0
      if not best or of_project < best_project or (of_project == best_project and of_queue < best_queue) then
        best, best_project, best_queue = queue, of_project, of_queue
      end
    end
  end
  return best
end

local reply = { 'ok' }
while #reply <= call.limit do
  local queue = next_queue()
  if not queue then
    break
  end
  queue.taken = queue.taken + 1
  local id = queue.ids[queue.taken]
  redis.call('ZREM', samples_key(call.pool), queue.name .. ' ' .. id)
  local known = redis.call('HMGET', sample_key(id), 'payload', 'until')
  if known[1] then
    count_request(usage, queue.name, 1)
    -- The first worker has taken it: a later one may be late.
    redis.call('HSET', sample_key(id), 'worker', call.worker, 'until', '')
    redis.call('ZADD', taken_key(call.pool), string.format('%d', now + call.hold_ms), id)
    keep_sample(id, call.pool)
    local late = known[2] ~= '' and tonumber(known[2]) < now
    reply[#reply + 1] = { id, known[1], late and '1' or '' }
  end
end
return reply
