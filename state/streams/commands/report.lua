-- Appends metrics of a worker and sets the progress.
--
-- call: job_id, execution, metrics [JSON], progress (JSON or absent), batch (absent: always append), keep, at
-- Returns: ok, seq     the last sequence number; nothing is added when the batch was written before
-- Errors: job_not_found, job_final, stale_epoch

local job = load_job(call.job_id)
local refused = fence(job, call.execution)
if refused then
  return refused
end
local key = job_key(call.job_id)
local seq = tonumber(job.seq)
if call.batch and call.batch <= tonumber(job.batch) then
  return { 'ok', seq }
end
for _, metric in ipairs(call.metrics) do
  seq = append_entry(call.job_id, 'metric', call.keep, 'metric', metric)
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
