-- Fits the places of a running job to what is wanted of it, before its next generation of ranks: fewer when fewer are asked
-- for, more when slots are free and nobody waits for them; those on workers that are gone are replaced.
--
-- call: job_id, epoch, spread, grow (true: only add, so that ranks that run keep their places)
-- Returns: ok, places (JSON)
--          ok              it can't have as many as it needs, or has to leave; nothing is changed
-- Errors: job_not_found, job_final, stale_epoch
--- @include job
--- @include attempt
--- @include use
--- @include state
--- @include fit
--- @include pool
--- @include places

local job = load_job(call.job_id)
local refused = fence(job, call.epoch)
if refused then
  return refused
end
local now = now_ms()
local pool = load_pool(job.pool, now)
local demand = demand_of(job)
local before = decode_places(job.places)
local leader = pool.by_id[job.worker]
local group = leader and leader.group or group_of(pool, before)

local is_wanted = false
for _, other in ipairs(waiting_jobs(job.pool, pool)) do
  is_wanted = is_wanted or counts(pool, other, now, call.spread, group)
end
local ask = ask_of(call.job_id, job)

local function grown(places, most)
  return more_places(pool, demand, places, in_order(pool, leader, group, call.spread), most)
end

if call.grow then
  local places = (is_wanted or ask) and before or grown(before, demand.want)
  if #places > 0 then
    redis.call('HSET', job_key(call.job_id), 'places', cjson.encode(places))
  end
  return { 'ok', cjson.encode(places) }
end

local kept, left = {}, 0
for _, place in ipairs(before) do
  local worker = pool.by_id[place.worker_id]
  if place.worker_id == job.worker or (worker and not worker.draining and worker.group == group) then
    kept[#kept + 1] = place
    left = left + place.slots
  end
end
local most = math.min(demand.want, ask or demand.want)
local surplus = left - math.min(left - left % demand.multiple, most)
for i = #kept, 1, -1 do
  local slots = math.min(kept[i].slots, surplus)
  kept[i].slots = kept[i].slots - slots
  surplus = surplus - slots
  if kept[i].slots == 0 then
    table.remove(kept, i)
  end
end
-- With fewer than it needs it takes what it can get: the ranks that it had came first.
local need = least_ranks(pool, demand, kept)
local places = grown(kept, (is_wanted or ask) and math.min(need, most) or most)
if count_places(places) < math.max(need, least_ranks(pool, demand, places)) then
  return { 'ok' }
end
hold_places(call.job_id, job, places)
set_attempt_workers(call.job_id, job.worker, places)
return { 'ok', cjson.encode(places) }
