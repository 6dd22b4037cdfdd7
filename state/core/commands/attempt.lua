-- The list of a job's attempts: one entry per epoch, the newest last. Needs job.lua.

-- Maximum number of entries; the newest are kept.
local ATTEMPTS_KEPT = 1000
-- Maximum number of generations of an entry; the newest are kept.
local GENERATIONS_KEPT = 100

local function attempts_key(id)
  return job_key(id) .. ':attempts'
end

-- Lets `change` change the newest entry; does nothing without one, or when it has ended.
local function with_attempt(id, change)
  local text = redis.call('LINDEX', attempts_key(id), -1)
  local entry = text and cjson.decode(text)
  if not entry or entry.ended_at then
    return
  end
  change(entry)
  redis.call('LSET', attempts_key(id), -1, cjson.encode(entry))
end

local function change_attempt(id, fields)
  with_attempt(id, function(entry)
    for field, value in pairs(fields) do
      entry[field] = value
    end
  end)
end

-- Begins a generation of ranks, or with nil for `world_size` only ends the one before. A repeated call changes nothing.
local function change_generation(id, world_size, at)
  with_attempt(id, function(entry)
    local generations = entry.generations or {}
    local newest = generations[#generations]
    if newest and not newest.ended_at then
      if newest.world_size == world_size then
        return
      end
      newest.ended_at = at
    end
    if world_size then
      table.insert(generations, { world_size = world_size, started_at = at })
      if #generations > GENERATIONS_KEPT then
        table.remove(generations, 1)
      end
      entry.generations = generations
    end
  end)
end

-- `reason` may be nil or ''.
local function end_attempt(id, outcome, reason, at)
  change_attempt(id, { ended_at = at, outcome = outcome, reason = reason ~= '' and reason or nil })
end

local function begin_attempt(id, entry, at)
  -- A lost worker could not end its own attempt.
  end_attempt(id, 'lost', 'worker_lost', at)
  entry.started_at = at
  redis.call('RPUSH', attempts_key(id), cjson.encode(entry))
  redis.call('LTRIM', attempts_key(id), -ATTEMPTS_KEPT, -1)
end

-- Sets the workers of the job's placements, the leader first.
local function set_attempt_workers(id, leader, placements)
  local workers = { leader }
  for _, placement in ipairs(placements) do
    if placement.worker_id ~= leader then
      workers[#workers + 1] = placement.worker_id
    end
  end
  change_attempt(id, { workers = workers })
end
