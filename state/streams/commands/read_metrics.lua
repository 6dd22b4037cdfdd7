-- Reads metrics by their sequence numbers.
--
-- call: job_id, stream, ranges [{first, last}] of sequence numbers, in the order of the result
-- Returns: ok, {entry…}     an entry is {id, {field, value…}}; metrics that were dropped are left out
-- Errors: position_lost     the job has another stream
--- @flags no-writes

local key = job_key(call.job_id)
if redis.call('HGET', key, 'stream') ~= call.stream then
  return failure('position_lost', 'the metrics were lost with the data of Redis while they were read: read them again')
end
local found = {}
for _, range in ipairs(call.ranges) do
  local first, last = string.format('%d', range.first), string.format('%d', range.last)
  for _, entry in ipairs(redis.call('XRANGE', key .. ':metrics', first, last)) do
    found[#found + 1] = entry
  end
end
return { 'ok', found }
