-- The slots of a pool: who offers them, who holds them, and where a job would go. Needs include/job.lua, include/state.lua.
--
-- Every slot of a pool is counted here and nowhere else. A job holds its places as long as its lease lasts: the places of
-- an agent that was killed become free by themselves, and two agents can never be promised the same slot.
--
-- All ranks of a job compute the same bits: its places lie in one group, the workers with the numerics of its leader. Those
-- that do not say what decides theirs are a group, too.

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
    local fields = redis.call('HMGET', prefix .. ':worker:' .. id, 'slots', 'draining', 'retiring', 'numerics')
    local draining = fields[2] == '1' or fields[3] == '1'
    -- Nothing new begins on a worker that is about to leave.
    local slots = draining and 0 or tonumber(fields[1])
    local worker = { id = id, slots = slots, free = slots, used = 0, draining = draining, group = fields[4] or '' }
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

-- The groups whose workers could take so many ranks if nothing else ran, as a set.
local function groups_for(pool, need, spread)
  local most, groups = {}, {}
  for _, worker in ipairs(pool.workers) do
    local before = most[worker.group] or 0
    most[worker.group] = spread and before + worker.slots or math.max(before, worker.slots)
    if most[worker.group] >= need then
      groups[worker.group] = true
    end
  end
  return groups
end

-- Whether some group could, or the one that is given.
local function is_possible(pool, need, spread, group)
  local groups = groups_for(pool, need, spread)
  if group then
    return groups[group] == true
  end
  return next(groups) ~= nil
end

-- The group of a job's places; nil when all their workers are gone.
local function group_of(pool, places)
  for _, place in ipairs(places) do
    local worker = pool.by_id[place.worker_id]
    if worker then
      return worker.group
    end
  end
  return nil
end

-- The workers of a group in the order in which a job takes slots: the leader, which may be gone, and with `spread` the others,
-- the emptiest first.
local function in_order(pool, leader, group, spread)
  local order = leader and { leader } or {}
  if spread then
    local others = {}
    for _, worker in ipairs(pool.workers) do
      if worker ~= leader and worker.group == group then
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

-- Where a job would go: all of `need` or nil, and more up to `want`. With `spread` over several workers of the leader's group, its
-- own slots first and at least one of them; else on the leader alone.
local function find_places(pool, demand, leader, spread)
  if not leader or leader.free < 1 then
    return nil
  end
  local order = in_order(pool, leader, leader.group, spread)
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

-- The worker that could lead the most ranks now.
local function best_leader(pool, spread)
  local free = {}
  for _, worker in ipairs(pool.workers) do
    free[worker.group] = (free[worker.group] or 0) + worker.free
  end
  local best, most = nil, 0
  for _, worker in ipairs(pool.workers) do
    local reach = spread and free[worker.group] or worker.free
    if not best or reach > most or (reach == most and by_free(worker, best)) then
      best, most = worker, reach
    end
  end
  return best
end
