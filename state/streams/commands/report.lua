-- Appends metrics of a worker and sets the progress.
--
-- call: job_id, execution, metrics [{step, text (JSON)}], progress (JSON or absent), batch (absent: always append), keep, at
-- Returns: ok, seq     the last sequence number; nothing is added when the batch was written before
-- Errors: job_not_found, job_final, stale_epoch

local job = load_job(call.job_id)
local refused = fence(job, call.execution)
if refused then
  return refused
end
local key = job_key(call.job_id)
local blocks = key .. ':metric-blocks'
-- Metrics of one block. Smaller blocks: fewer metrics are read that are outside of a range of steps; larger ones: a shorter list.
local BLOCK = 100

-- Adds a metric to the newest block, so that read_stream finds a range of steps without reading the others.
local function note_step(seq, step)
  local newest = redis.call('LINDEX', blocks, -1) or ''
  local first, least, greatest, count = string.match(newest, '^(%d+) (%d+) (%d+) (%d+)$')
  if count and tonumber(count) < BLOCK then
    local range = { math.min(least, step), math.max(greatest, step) }
    redis.call('LSET', blocks, -1, string.format('%s %d %d %d', first, range[1], range[2], count + 1))
  else
    redis.call('RPUSH', blocks, string.format('%d %d %d 1', seq, step, step))
    redis.call('LTRIM', blocks, -math.ceil(call.keep / BLOCK) - 2, -1)
  end
end

local seq = tonumber(job.seq)
if call.batch and call.batch <= tonumber(job.batch) then
  return { 'ok', seq }
end
for _, metric in ipairs(call.metrics) do
  seq = append_entry(call.job_id, 'metric', call.keep, 'metric', metric.text)
  note_step(seq, metric.step)
end
if call.progress then
  -- After a step back the same tokens are trained again, and count again.
  local tokens = cjson.decode(call.progress).tokens - cjson.decode(job.progress).tokens
  add_usage(job.project, 'tokens', tokens)
  redis.call('HSET', key, 'progress', call.progress)
end
if call.batch then
  redis.call('HSET', key, 'batch', call.batch)
end
redis.call('HSET', key, 'updated_at', call.at)
if #call.metrics > 0 then
  wake(call.job_id, seq)
end
return { 'ok', seq }
