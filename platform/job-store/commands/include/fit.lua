-- How many ranks a job may have on which workers of a pool (see load_pool), as far as their GPUs' memory goes.
--
-- On a GPU a rank needs the less memory the more ranks there are. A job's record says how much for the numbers of ranks that its
-- document allows. So a demand has ranges of ranks, and for each the workers whose GPUs have that memory; where ranks run on CPUs it
-- has one.

-- How many sizes of GPUs of the pool have so much memory.
local function count_large(pool, bytes)
  local count = 0
  for size in pairs(pool.gpu_sizes) do
    count = count + (size >= bytes and 1 or 0)
  end
  return count
end

-- `least` to `most` ranks that need at most so many `bytes` each, the most ranks first. Neighbours for which the same GPUs are
-- large enough are one.
local function ranges_of(pool, demand)
  if demand.ranges then
    return demand.ranges
  end
  local sizes = { { 0, 0 } }
  -- Records of earlier versions say nothing; no GPU offered slots then.
  if next(pool.gpu_sizes) and (demand.gpu_bytes or '') ~= '' then
    sizes = cjson.decode(demand.gpu_bytes)
  end
  local ranges, before = {}, nil
  local most = math.huge
  for i = #sizes, 1, -1 do
    local least = math.max(1, demand.need, i == 1 and 0 or sizes[i][1])
    local large = count_large(pool, sizes[i][2])
    local range = ranges[#ranges]
    if range and large == before then
      range.least, range.bytes = least, math.max(range.bytes, sizes[i][2])
    else
      ranges[#ranges + 1] = { least = least, most = most, bytes = sizes[i][2] }
    end
    before, most = large, sizes[i][1] - 1
  end
  demand.ranges = ranges
  return ranges
end

local function has_room(worker, bytes)
  return not worker.gpu_bytes or worker.gpu_bytes >= bytes
end

local function with_room(workers, bytes)
  local roomy = {}
  for _, worker in ipairs(workers) do
    if has_room(worker, bytes) then
      roomy[#roomy + 1] = worker
    end
  end
  return roomy
end

-- How many ranks of a range a job would have where so many slots are available; nil when it is fewer than it needs.
local function ranks_in(demand, range, available)
  local ranks = math.min(demand.want, range.most, available)
  ranks = ranks - ranks % demand.multiple
  return ranks >= range.least and ranks or nil
end

-- The groups whose workers could take a job if nothing else ran, as a set.
local function groups_for(pool, demand, spread)
  local groups = {}
  for _, range in ipairs(ranges_of(pool, demand)) do
    local most = {}
    for _, worker in ipairs(with_room(pool.workers, range.bytes)) do
      local before = most[worker.group] or 0
      most[worker.group] = spread and before + worker.slots or math.max(before, worker.slots)
    end
    for group, slots in pairs(most) do
      if ranks_in(demand, range, slots) then
        groups[group] = true
      end
    end
  end
  return groups
end

-- Whether some group could, or the one that is given.
local function is_possible(pool, demand, spread, group)
  local groups = groups_for(pool, demand, spread)
  if group then
    return groups[group] == true
  end
  return next(groups) ~= nil
end

-- The fewest ranks that a job may have on the workers of some places; infinitely many where it does not fit at all.
local function least_ranks(pool, demand, places)
  local least = math.huge
  for _, range in ipairs(ranges_of(pool, demand)) do
    local fits = true
    for _, place in ipairs(places) do
      local worker = pool.by_id[place.worker_id]
      fits = fits and (not worker or has_room(worker, range.bytes))
    end
    least = fits and range.least or least
  end
  return least
end
