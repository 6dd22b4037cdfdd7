-- Appends metrics of a worker and sets the progress.
--
-- call: job_id, execution, metrics [{step, text (JSON), values {name: decimal text}, line_bytes}], progress (JSON or
-- absent), batch (absent: always
--       append), keep, block (greatest number of metrics of a block), at
-- Returns: ok, seq     the last sequence number; nothing is added when the batch was written before
-- Errors: job_not_found, job_final, stale_epoch

local job = load_job(call.job_id)
local refused = fence(job, call.execution)
if refused then
  return refused
end
local key = job_key(call.job_id)
local blocks, extremes = key .. ':metric-blocks', key .. ':metric-extremes'

-- Adds values to the extremes of a block: name -> {least, its seq, greatest, its seq}. Of equal values the newest one
-- is kept. Values stay text: cjson rounds numbers.
local function widen(known, seq, values)
  for name, text in pairs(values) do
    local value, pair = tonumber(text), known[name] or { text, seq, text, seq }
    if value <= tonumber(pair[1]) then
      pair[1], pair[2] = text, seq
    end
    if value >= tonumber(pair[3]) then
      pair[3], pair[4] = text, seq
    end
    known[name] = pair
  end
  return cjson.encode(known)
end

-- Adds a metric to the newest block if its step follows those of the block, else to a new block. A step back therefore
-- begins a block.
local function note_metric(seq, metric)
  local newest = redis.call('LINDEX', blocks, -1) or ''
  local first, least, greatest, bytes = string.match(newest, '^(%d+) (%d+) (%d+) %d+ (%d+)')
  if first and metric.step == greatest + 1 and metric.step - least < call.block then
    redis.call('LSET', blocks, -1, string.format('%s %s %d %d %d', first, least, metric.step, seq, bytes + metric.line_bytes))
    redis.call('LSET', extremes, -1, widen(cjson.decode(redis.call('LINDEX', extremes, -1)), seq, metric.values))
  else
    redis.call('RPUSH', blocks, string.format('%d %d %d %d %d', seq, metric.step, metric.step, seq, metric.line_bytes))
    redis.call('RPUSH', extremes, widen({}, seq, metric.values))
  end
end

-- Removes the blocks whose metrics were all dropped.
local function drop_blocks()
  local kept = redis.call('XRANGE', key .. ':metrics', '-', '+', 'COUNT', 1)[1]
  local oldest = tonumber(string.match(kept[1], '^%d+'))
  while tonumber(string.match(redis.call('LINDEX', blocks, 0), '(%d+) %d+$')) < oldest do
    redis.call('LPOP', blocks)
    redis.call('LPOP', extremes)
  end
end

local seq = tonumber(job.seq)
if call.batch and call.batch <= tonumber(job.batch) then
  return { 'ok', seq }
end
for _, metric in ipairs(call.metrics) do
  seq = append_entry(call.job_id, 'metric', call.keep, 'metric', metric.text)
  note_metric(seq, metric)
end
if #call.metrics > 0 then
  drop_blocks()
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
