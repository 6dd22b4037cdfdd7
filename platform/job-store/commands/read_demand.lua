-- Reads what the jobs of some pools ask for, and what their workers do, at one moment: what an autoscaler has to know.
--
-- call: pools [{name, ranks}]     no more waiting jobs are read than it takes to want so many `ranks`
-- Returns: ok, {name, {job…}, {worker…}, {project, max_ranks}…}…     pools in their order
--          job: id, project, priority, need, want, multiple, ranks that it holds (0: it waits, or its worker was lost)
--          worker: record (JSON), busy (1: it leads a job or has places of one), draining (1), retiring (1), free slots
--- @include job
--- @include attempt
--- @include use
--- @include state
--- @include pool

-- Reading more would hold up everybody else; whoever is further back waits for them.
local MAX_JOBS = 10000
local FIELDS = {
  'project',
  'priority',
  'ranks_min',
  'ranks_most',
  'ranks_multiple',
  'requested_ranks',
  'gpu_bytes',
  'final',
  'places',
  'lease_until',
}

local now = now_ms()
local leads = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. ':leases', '(' .. string.format('%d', now), '+inf')) do
  leads[redis.call('HGET', job_key(id), 'worker')] = true
end

-- Jobs that wait, or have to, in order: those whose worker was lost first, for they have waited their turn.
local function waiting_ids(key, lost)
  local ids = lost
  for _, list in ipairs({ key .. ':waiting', key .. ':delayed' }) do
    for _, id in ipairs(redis.call('ZRANGE', list, 0, MAX_JOBS - 1)) do
      ids[#ids + 1] = id
    end
  end
  return ids
end

-- The fewest ranks of a job on GPUs of so much memory each: a rank needs the less memory the more ranks there are.
local function least_ranks(demand, gpu_bytes)
  local sizes = gpu_bytes and demand.gpu_bytes ~= '' and cjson.decode(demand.gpu_bytes) or {}
  for i, size in ipairs(sizes) do
    if size[2] <= gpu_bytes then
      return math.max(1, demand.need, i == 1 and 0 or size[1])
    end
  end
  return #sizes > 0 and math.huge or demand.need
end

-- As the workers that are there would have it; a job that fits on none of them asks for what its document says.
local function need_of(pool, demand)
  local need = math.huge
  for _, worker in ipairs(pool.workers) do
    need = math.min(need, least_ranks(demand, worker.gpu_bytes))
  end
  return need <= demand.want and need or demand.need
end

local reply = { 'ok' }
for _, wanted in ipairs(call.pools) do
  local key = prefix .. ':pool:' .. wanted.name
  local pool = load_pool(wanted.name, now)
  local jobs, known, projects, lost, ranks = {}, {}, {}, {}, 0
  local function add(id, job, held)
    local demand = demand_of(job)
    local project = project_of(job)
    known[id] = true
    projects[project] = true
    ranks = ranks + (held == 0 and demand.want or 0)
    jobs[#jobs + 1] = { id, project, tonumber(job.priority or 0), need_of(pool, demand), demand.want, demand.multiple, held }
  end
  for _, holder in ipairs(pool.holders) do
    add(holder.id, holder.job, holder.ranks)
  end
  for _, id in ipairs(redis.call('SMEMBERS', key .. ':holders')) do
    lost[#lost + 1] = not known[id] and id or nil
  end
  for _, id in ipairs(waiting_ids(key, lost)) do
    if ranks >= wanted.ranks or #jobs >= MAX_JOBS then
      break
    end
    local job = not known[id] and load_fields(id, FIELDS)
    -- Records of earlier versions do not say what they ask for.
    if job and job.final ~= '1' and job.requested_ranks then
      add(id, job, 0)
    end
  end
  local workers, quotas = {}, {}
  for _, worker in ipairs(pool.workers) do
    local fields = redis.call('HMGET', prefix .. ':worker:' .. worker.id, 'record', 'retiring')
    local busy = (worker.used > 0 or leads[worker.id]) and 1 or 0
    workers[#workers + 1] = { fields[1], busy, worker.draining and 1 or 0, fields[2] == '1' and 1 or 0, worker.free }
  end
  for project in pairs(projects) do
    local max = max_of(project, 'max_ranks')
    quotas[#quotas + 1] = max and { project, max } or nil
  end
  reply[#reply + 1] = { wanted.name, jobs, workers, quotas }
end
return reply
