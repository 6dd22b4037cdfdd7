-- Takes requests for samples for a worker, as many as it has places and at most `limit`. The project that uses the
-- fewest places of the worker comes first, then the model that does, then the request that has waited longest. Requests
-- of workers that stopped renewing them wait again before; one that has lost too many is ended.
--
-- call: pool, worker, places, using {'<project> <model>' = places that the worker uses}, hold_ms, limit, max_lost,
-- lost_reply (JSON: the
--       message for a caller whose request lost too many workers)
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

local places = new_places(call.places)
for turn, count in pairs(call.using) do
  count_places(places, turn, count)
end
local turns, by_name = {}, {}
for _, member in ipairs(redis.call('ZRANGE', samples_key(call.pool), 0, -1)) do
  local name, id = string.match(member, '^(%S+ %S+) (%S+)$')
  if not by_name[name] then
    by_name[name] = { name = name, project = string.match(name, '^%S+'), ids = {}, taken = 0 }
    turns[#turns + 1] = by_name[name]
  end
  table.insert(by_name[name].ids, id)
end

-- Returns the turn whose request comes next; nil when none may have a place.
local function next_turn()
  local best, best_project, best_turn
  for _, turn in ipairs(turns) do
    if turn.taken < #turn.ids and has_place(places, turn.name) then
      local of_project, of_turn = places.by_project[turn.project] or 0, places.by_turn[turn.name] or 0
      if not best or of_project < best_project or (of_project == best_project and of_turn < best_turn) then
        best, best_project, best_turn = turn, of_project, of_turn
      end
    end
  end
  return best
end

local reply = { 'ok' }
while #reply <= call.limit do
  local turn = next_turn()
  if not turn then
    break
  end
  turn.taken = turn.taken + 1
  local id = turn.ids[turn.taken]
  redis.call('ZREM', samples_key(call.pool), turn.name .. ' ' .. id)
  local known = redis.call('HMGET', sample_key(id), 'payload', 'until')
  if known[1] then
    count_places(places, turn.name, 1)
    -- The first worker has taken it: a later one may be late.
    redis.call('HSET', sample_key(id), 'worker', call.worker, 'until', '')
    redis.call('ZADD', taken_key(call.pool), string.format('%d', now + call.hold_ms), id)
    keep_sample(id, call.pool)
    local late = known[2] ~= '' and tonumber(known[2]) < now
    reply[#reply + 1] = { id, known[1], late and '1' or '' }
  end
end
return reply
