-- Appends log lines of a worker.
--
-- call: job_id, execution, lines [JSON], batch (absent: always append), keep
-- Returns: ok, seq     the last sequence number; nothing is added when the batch was written before
-- Errors: job_not_found, job_final, stale_epoch

local job = load_job(call.job_id)
local refused = fence(job, call.execution)
if refused then
  return refused
end
local key = job_key(call.job_id)
local seq = tonumber(job.seq)
-- Batches of logs are numbered separately from metrics, and again from 1 in each execution.
local execution, batch = string.match(job.log_batch or '', '^(.+):(%d+)$')
if call.batch and execution == call.execution and call.batch <= tonumber(batch) then
  return { 'ok', seq }
end
for _, line in ipairs(call.lines) do
  seq = append_entry(call.job_id, 'log', call.keep, 'line', line)
end
if call.batch then
  redis.call('HSET', key, 'log_batch', string.format('%s:%d', call.execution, call.batch))
end
if #call.lines > 0 then
  wake(call.job_id, seq)
end
return { 'ok', seq }
