-- The slots of a pool: who offers them, who holds them, who is to have them next. Needs include/job.lua, include/state.lua.
--
-- Every slot of a pool is counted here and nowhere else. A job holds its places as long as its lease lasts: the places of
-- an agent that was killed become free by themselves, and two agents can never be promised the same slot.

-- So many of the first in the order are looked at; whoever is further back waits for them.
local FRONT = 100
-- The first in the order that fits nowhere lets smaller jobs pass; after this long the pool keeps its slots for it.
local HOLD_MS = 60000

-- What a job asks for, from its record: `want` ranks, or fewer, but not below `need`; always whole sets of experts.
local function demand_of(job)
  local multiple = tonumber(job.ranks_multiple or 1)
  local requested = tonumber(job.requested_ranks)
  local want = math.min(requested, tonumber(job.ranks_most or requested))
  want = want - want % multiple
  return { want = want, need = math.min(tonumber(job.ranks_min or 1), want), multiple = multiple }
end

-- Some fields of a record, as load_job gives all of them.
local function load_fields(id, names)
  local job = {}
  for i, value in ipairs(redis.call('HMGET', job_key(id), unpack(names))) do
    job[names[i]] = value or nil
  end
  return job
end

local HOLDER_FIELDS = {
  'lease_until',
  'places',
  'project',
  'priority',
  'standing',
  'ask',
  'ask_for',
  'ranks_min',
  'ranks_most',
  'ranks_multiple',
  'requested_ranks',
}
local WAITING_FIELDS = {
  'queued_since',
  'seen_until',
  'project',
  'ranks_min',
  'ranks_most',
  'ranks_multiple',
  'requested_ranks',
}

local function decode_places(text)
  return (text and text ~= '') and cjson.decode(text) or {}
end

local function count_places(places)
  local ranks = 0
  for _, place in ipairs(places) do
    ranks = ranks + place.slots
  end
  return ranks
end

local function by_free(a, b)
  if a.free ~= b.free then
    return a.free > b.free
  end
  return a.id < b.id
end

-- Workers that are alive, with what is free on each; jobs that hold places, but for `except`; slots in use by project.
local function load_pool(name, now, except)
  local key = prefix .. ':pool:' .. name
  local pool = { workers = {}, by_id = {}, holders = {}, usage = {} }
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key .. ':workers', '(' .. string.format('%d', now), '+inf')) do
    local fields = redis.call('HMGET', prefix .. ':worker:' .. id, 'slots', 'draining', 'retiring')
    local draining = fields[2] == '1' or fields[3] == '1'
    -- Nothing new begins on a worker that is about to leave.
    local slots = draining and 0 or tonumber(fields[1])
    local worker = { id = id, slots = slots, free = slots, used = 0, draining = draining }
    pool.workers[#pool.workers + 1] = worker
    pool.by_id[id] = worker
  end
  for _, id in ipairs(redis.call('SMEMBERS', key .. ':holders')) do
    local job = load_fields(id, HOLDER_FIELDS)
    if id ~= except and tonumber(job.lease_until) > now then
      local places = decode_places(job.places)
      pool.holders[#pool.holders + 1] = { id = id, job = job, places = places, ranks = count_places(places) }
      local project = project_of(job)
      pool.usage[project] = (pool.usage[project] or 0) + count_places(places)
      for _, place in ipairs(places) do
        local worker = pool.by_id[place.worker_id]
        if worker then
          worker.used = worker.used + place.slots
          worker.free = math.max(0, worker.free - place.slots)
        end
      end
    end
  end
  return pool
end

-- Whether the workers that are alive could take so many ranks if nothing else ran.
local function is_possible(pool, need, spread)
  local most = 0
  for _, worker in ipairs(pool.workers) do
    most = spread and most + worker.slots or math.max(most, worker.slots)
  end
  return most >= need
end

-- The workers in the order in which a job takes slots: the leader, and with `spread` the others, the emptiest first.
local function in_order(pool, leader, spread)
  local order = leader and { leader } or {}
  if spread then
    local others = {}
    for _, worker in ipairs(pool.workers) do
      if worker ~= leader then
        others[#others + 1] = worker
      end
    end
    table.sort(others, by_free)
    for _, worker in ipairs(others) do
      order[#order + 1] = worker
    end
  end
  return order
end

local function count_free(order)
  local free = 0
  for _, worker in ipairs(order) do
    free = free + worker.free
  end
  return free
end

-- Adds `ranks` free slots to `places`; there must be as many.
local function add_places(places, order, ranks)
  for _, worker in ipairs(order) do
    local slots = math.min(worker.free, ranks)
    if slots > 0 then
      local known = nil
      for _, place in ipairs(places) do
        known = place.worker_id == worker.id and place or known
      end
      if known then
        known.slots = known.slots + slots
      else
        places[#places + 1] = { worker_id = worker.id, slots = slots }
      end
      ranks = ranks - slots
    end
  end
  return places
end

-- Where a job would go: all of `need` or nil, and more up to `want`. With `spread` over several workers, the leader's own
-- slots first and at least one of them; else on the leader alone.
local function find_places(pool, demand, leader, spread)
  if not leader or leader.free < 1 then
    return nil
  end
  local order = in_order(pool, leader, spread)
  local ranks = math.min(demand.want, count_free(order))
  ranks = ranks - ranks % demand.multiple
  if ranks < demand.need or ranks < 1 then
    return nil
  end
  return add_places({}, order, ranks)
end

local function take_places(pool, places)
  for _, place in ipairs(places) do
    local worker = pool.by_id[place.worker_id]
    worker.free = worker.free - place.slots
    worker.used = worker.used + place.slots
  end
end

local function most_free(pool)
  local best = nil
  for _, worker in ipairs(pool.workers) do
    if not best or by_free(worker, best) then
      best = worker
    end
  end
  return best
end

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

-- Whether `other`, which waits, is still asked for by its queue entry and could run on the workers that are there.
local function counts(pool, other, now, spread)
  return other.seen_until > now and is_possible(pool, other.demand.need, spread)
end

-- Sets aside what the jobs before `id` in the order will take. Returns what `id` waits for if it may take nothing now, and
-- whether all those before it fit.
local function set_aside(name, pool, id, now, spread)
  local all_fit = true
  for _, other in ipairs(waiting_jobs(name, pool)) do
    if other.id == id then
      return nil, all_fit
    end
    if counts(pool, other, now, spread) then
      local places = find_places(pool, other.demand, most_free(pool), spread)
      if places then
        take_places(pool, places)
      elseif now - other.since >= HOLD_MS then
        return 'order', false
      else
        all_fit = false
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
local function room_by_asking(holders, missing, priority)
  local left = {}
  for _, holder in ipairs(holders) do
    local demand = demand_of(holder.job)
    local spare = holder.ranks - demand.need
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

-- Asks running jobs to make room for the job that is next. They save first, so it takes a while: nobody is asked twice.
local function ask_for_room(id, job, pool, demand, request, now)
  local leader = pool.by_id[request.worker_id]
  if not leader then
    return
  end
  local mine = points_of(job, now)
  local holders = {}
  for _, holder in ipairs(pool.holders) do
    if holder.job.ask_for == id then
      return
    end
    local first = holder.places[1]
    if tonumber(holder.job.standing or 0) < mine and (request.spread or first.worker_id == leader.id) then
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
  local missing = demand.need - count_free(in_order(pool, leader, request.spread))
  local left = room_by_asking(holders, missing, tonumber(job.priority or 0))
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
  local places = find_places(pool, demand, pool.by_id[request.worker_id], request.spread)
  if places then
    redis.call('HSET', job_key(id), 'standing', points_of(job, now))
    return places
  end
  if not is_possible(pool, demand.need, request.spread) then
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
