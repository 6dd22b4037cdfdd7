-- The slots of a pool: workers that offer them, and jobs that hold them. Needs job.lua, state.lua.
--
-- A job holds its slots as long as its lease, before a worker claims it as long as its allocation. So the slots of a
-- killed worker become free when the lease expires.

-- Loads some fields of a record; load_job loads all of them.
local function load_fields(id, names)
  local job = {}
  for i, value in ipairs(redis.call('HMGET', job_key(id), unpack(names))) do
    job[names[i]] = value or nil
  end
  return job
end

local HOLDER_FIELDS = {
  'lease_until',
  'allocated_to',
  'allocated_until',
  'granted_priority',
  'placed_at',
  'placements',
  'project',
  'priority',
  'preemption_request',
  'preemptor',
  'move',
  'ranks_min',
  'ranks_max',
  'ranks_multiple',
  'requested_ranks',
  'gpu_bytes',
  'avoided',
}

local WORKER_FIELDS = { 'slots', 'draining', 'retiring', 'numerics', 'gpu_bytes', 'topology' }

local function decode_placements(text)
  return (text and text ~= '') and cjson.decode(text) or {}
end

local function count_slots(placements)
  local ranks = 0
  for _, placement in ipairs(placements) do
    ranks = ranks + placement.slots
  end
  return ranks
end

-- Returns the slots by worker that a job holds or that are reserved for its move.
local function taken_placements(job)
  local taken = {}
  for _, placements in ipairs({ decode_placements(job.placements), decode_placements(job.move) }) do
    for _, placement in ipairs(placements) do
      taken[placement.worker_id] = math.max(taken[placement.worker_id] or 0, placement.slots)
    end
  end
  return taken
end

-- Removes a worker that has left or expired. Its queue must be removed as well.
local function forget_worker(pool, id)
  redis.call('ZREM', prefix .. ':pool:' .. pool .. ':workers', id)
  redis.call('DEL', prefix .. ':worker:' .. id)
  redis.call('SADD', prefix .. ':removed-workers', id)
  change_pool(pool)
end

-- Returns live workers with their free slots, and jobs that hold slots.
local function load_pool(name, now)
  local key = prefix .. ':pool:' .. name
  local pool = { workers = {}, by_id = {}, holders = {} }
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key .. ':workers', '(' .. string.format('%d', now), '+inf')) do
    local fields = redis.call('HMGET', prefix .. ':worker:' .. id, unpack(WORKER_FIELDS))
    local draining = fields[2] == '1' or fields[3] == '1'
    -- A draining worker receives no new work.
    local slots = draining and 0 or tonumber(fields[1])
    local worker = { id = id, slots = tonumber(fields[1]), free = slots, used = 0 }
    worker.draining, worker.group = draining, fields[4] or ''
    -- Memory of the smallest of its GPUs; nil where ranks run on the CPU.
    worker.gpu_bytes = tonumber(fields[5] or '')
    worker.topology = fields[6]
    pool.workers[#pool.workers + 1] = worker
    pool.by_id[id] = worker
  end
  for _, id in ipairs(redis.call('SMEMBERS', key .. ':holders')) do
    local job = load_fields(id, HOLDER_FIELDS)
    if math.max(tonumber(job.lease_until or 0), tonumber(job.allocated_until or 0)) > now then
      local placements = decode_placements(job.placements)
      pool.holders[#pool.holders + 1] = { id = id, job = job, placements = placements, ranks = count_slots(placements) }
      for worker_id, slots in pairs(taken_placements(job)) do
        local worker = pool.by_id[worker_id]
        if worker then
          worker.used = worker.used + slots
          worker.free = math.max(0, worker.free - slots)
        end
      end
    end
  end
  return pool
end
