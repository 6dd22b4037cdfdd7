-- Whose turn it is to have slots of a pool, and what those who have some are asked for. Needs include/pool.lua and what it needs.

-- So many of the first in the order are looked at; whoever is further back waits for them.
local FRONT = 100
-- The first in the order that fits nowhere lets smaller jobs pass; after this long the pool keeps its slots for it.
local HOLD_MS = 60000

-- The first jobs that wait, in order: priority and ageing, then the project that uses fewer slots, then time.
local function waiting_jobs(name, pool)
  local found = {}
  local flat = redis.call('ZRANGE', prefix .. ':pool:' .. name .. ':waiting', 0, FRONT - 1, 'WITHSCORES')
  for i = 1, #flat, 2 do
    local job = load_fields(flat[i], WAITING_FIELDS)
    found[#found + 1] = {
      id = flat[i],
      level = tonumber(flat[i + 1]),
      usage = pool.usage[project_of(job)] or 0,
      since = tonumber(job.queued_since),
      seen_until = tonumber(job.seen_until),
      demand = demand_of(job),
    }
  end
  table.sort(found, function(a, b)
    for _, field in ipairs({ 'level', 'usage', 'since', 'id' }) do
      if a[field] ~= b[field] then
        return a[field] < b[field]
      end
    end
    return false
  end)
  return found
end

-- Whether `other`, which waits, is still asked for by its queue entry and could run on the workers that are there; on those of
-- `group` where it is given.
local function counts(pool, other, now, spread, group)
  return other.seen_until > now and is_possible(pool, other.demand, spread, group)
end

-- Nobody after `other` may take slots of the groups that it could run on.
local function keep_slots(pool, other, spread)
  local groups = groups_for(pool, other.demand, spread)
  for _, worker in ipairs(pool.workers) do
    if groups[worker.group] then
      worker.kept, worker.free = true, 0
    end
  end
end

-- Sets aside what the jobs before `id` in the order will take. Returns what `id` waits for if it may take nothing at all now, and
-- whether all those before it fit.
local function set_aside(name, pool, id, now, spread)
  local all_fit = true
  for _, other in ipairs(waiting_jobs(name, pool)) do
    if other.id == id then
      return nil, all_fit
    end
    if counts(pool, other, now, spread) then
      local places = find_anywhere(pool, other.demand, spread)
      if places then
        take_places(pool, places)
      else
        all_fit = false
        if now - other.since >= HOLD_MS then
          keep_slots(pool, other, spread)
        end
      end
    end
  end
  return 'order', false
end

-- Priority, and a point for each while that the job has waited.
local function points_of(job, now)
  return tonumber(job.priority or 0) + math.floor((now - tonumber(job.queued_since)) / AGEING_MS)
end

-- What has to be given up so that `missing` more slots become free, as ranks that are left by holder; nil when it would not
-- be enough. First what jobs have above their minimum, of those that stood lower in the order when they began; then whole
-- jobs, of lower priority only.
local function room_by_asking(pool, holders, missing, priority)
  local left = {}
  for _, holder in ipairs(holders) do
    local demand = demand_of(holder.job)
    local spare = math.max(0, holder.ranks - least_ranks(pool, demand, holder.places))
    local give = math.ceil(math.max(0, missing) / demand.multiple) * demand.multiple
    give = math.min(spare - spare % demand.multiple, give)
    if give > 0 then
      left[holder] = holder.ranks - give
      missing = missing - give
    end
  end
  for _, holder in ipairs(holders) do
    if missing > 0 and tonumber(holder.job.priority or 0) < priority then
      missing = missing - (left[holder] or holder.ranks)
      left[holder] = 0
    end
  end
  return missing <= 0 and left or nil
end

-- Asks running jobs of the leader's group to make room for the job that is next. They save first, so it takes a while: nobody is
-- asked twice.
local function ask_for_room(id, job, pool, demand, request, now)
  local leader = pool.by_id[request.worker_id]
  if not leader or not is_possible(pool, demand, request.spread, leader.group) then
    return
  end
  local mine = points_of(job, now)
  local holders = {}
  for _, holder in ipairs(pool.holders) do
    if holder.job.ask_for == id then
      return
    end
    local first = holder.places[1]
    local is_near = request.spread and group_of(pool, holder.places) == leader.group or first.worker_id == leader.id
    if tonumber(holder.job.standing or 0) < mine and is_near then
      holders[#holders + 1] = holder
    end
  end
  table.sort(holders, function(a, b)
    local a_stands, b_stands = tonumber(a.job.standing or 0), tonumber(b.job.standing or 0)
    if a_stands ~= b_stands then
      return a_stands < b_stands
    end
    return a.id > b.id
  end)
  local need = least_ranks(pool, demand, { { worker_id = leader.id } })
  local missing = need - count_free(in_order(pool, leader, leader.group, request.spread))
  local left = room_by_asking(pool, holders, missing, tonumber(job.priority or 0))
  for holder, ranks in pairs(left or {}) do
    redis.call('HSET', job_key(holder.id), 'ask', ranks, 'ask_for', id)
    redis.call('PUBLISH', job_key(holder.id) .. ':control', 'ask')
  end
end

-- Places for a job that waits, or nil and what it waits for: 'order', 'slots' or 'workers'.
local function reserve_places(id, job, request, now)
  if not redis.call('ZSCORE', prefix .. ':pool:' .. job.pool .. ':waiting', id) then
    -- Its worker was lost.
    start_waiting(id, job)
  end
  job.queued_since = redis.call('HGET', job_key(id), 'queued_since')
  redis.call('HSET', job_key(id), 'seen_until', string.format('%d', now + SEEN_MS))
  local pool = load_pool(job.pool, now, id)
  local demand = demand_of(job)
  local waiting_for, all_fit = set_aside(job.pool, pool, id, now, request.spread)
  if waiting_for then
    return nil, waiting_for
  end
  local leader = pool.by_id[request.worker_id]
  if leader and leader.kept then
    return nil, 'order'
  end
  local places = find_places(pool, demand, leader, request.spread)
  if places then
    redis.call('HSET', job_key(id), 'standing', points_of(job, now))
    return places
  end
  if not is_possible(pool, demand, request.spread) then
    return nil, 'workers'
  end
  if all_fit then
    ask_for_room(id, job, pool, demand, request, now)
  end
  return nil, 'slots'
end

-- Gives places, which may be none, to the worker that holds the job now.
local function hold_places(id, job, places)
  local holders = prefix .. ':pool:' .. job.pool .. ':holders'
  redis.call('HSET', job_key(id), 'ask', '', 'ask_for', '')
  if #places == 0 then
    redis.call('HSET', job_key(id), 'places', '')
    redis.call('SREM', holders, id)
  else
    redis.call('HSET', job_key(id), 'places', cjson.encode(places))
    redis.call('SADD', holders, id)
  end
end
