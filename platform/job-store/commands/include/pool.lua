-- The slots of a pool: who offers them, who holds them, and where a job would go. Needs include/job.lua,
-- include/state.lua, include/fit.lua.
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
  local need = math.min(tonumber(job.ranks_min or 1), want)
  return { want = want, need = need, multiple = multiple, gpu_bytes = job.gpu_bytes }
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
  'gpu_bytes',
}
local WAITING_FIELDS = {
  'queued_since',
  'seen_until',
  'project',
  'ranks_min',
  'ranks_most',
  'ranks_multiple',
  'requested_ranks',
  'gpu_bytes',
}

local WORKER_FIELDS = { 'slots', 'draining', 'retiring', 'numerics', 'gpu_bytes' }

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
  local pool = { workers = {}, by_id = {}, holders = {}, usage = {}, gpu_sizes = {} }
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key .. ':workers', '(' .. string.format('%d', now), '+inf')) do
    local fields = redis.call('HMGET', prefix .. ':worker:' .. id, unpack(WORKER_FIELDS))
    local draining = fields[2] == '1' or fields[3] == '1'
    -- Nothing new begins on a worker that is about to leave.
    local slots = draining and 0 or tonumber(fields[1])
    local worker = { id = id, slots = slots, free = slots, used = 0, draining = draining, group = fields[4] or '' }
    -- Memory of the smallest of its GPUs; nil where ranks run on the CPU.
    worker.gpu_bytes = tonumber(fields[5] or '')
    if worker.gpu_bytes then
      pool.gpu_sizes[worker.gpu_bytes] = true
    end
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
  for _, range in ipairs(ranges_of(pool, demand)) do
    local roomy = with_room(order, range.bytes)
    local ranks = roomy[1] == leader and ranks_in(demand, range, count_free(roomy))
    if ranks then
      return add_places({}, roomy, ranks)
    end
  end
  return nil
end

-- More of `order` for a job that has `places`, up to `most` ranks; the same where there are none.
local function more_places(pool, demand, places, order, most)
  local before = count_places(places)
  for _, range in ipairs(ranges_of(pool, demand)) do
    local roomy = with_room(order, range.bytes)
    local ranks = ranks_in(demand, range, math.min(most, before + count_free(roomy)))
    if ranks and ranks > before then
      return add_places(places, roomy, ranks - before)
    end
  end
  return places
end

local function take_places(pool, places)
  for _, place in ipairs(places) do
    local worker = pool.by_id[place.worker_id]
    worker.free = worker.free - place.slots
    worker.used = worker.used + place.slots
  end
end

-- Where a job would go if the best worker for it claimed it: of each kind the emptiest is tried, in the group that has the most free
-- slots first.
local function find_anywhere(pool, demand, spread)
  local free, best = {}, {}
  for _, worker in ipairs(pool.workers) do
    local kind = worker.group .. ' ' .. (worker.gpu_bytes or '')
    free[worker.group] = (free[worker.group] or 0) + worker.free
    best[kind] = (not best[kind] or by_free(worker, best[kind])) and worker or best[kind]
  end
  local leaders = {}
  for _, worker in pairs(best) do
    leaders[#leaders + 1] = worker
  end
  local function reach(worker)
    return spread and free[worker.group] or worker.free
  end
  table.sort(leaders, function(a, b)
    if reach(a) ~= reach(b) then
      return reach(a) > reach(b)
    end
    return by_free(a, b)
  end)
  for _, leader in ipairs(leaders) do
    local places = find_places(pool, demand, leader, spread)
    if places then
      return places
    end
  end
  return nil
end
