-- Reads the blocks of a job's metrics (report.lua), oldest first.
--
-- call: job_id, after (seq: only blocks that begin after it), limit
-- Returns: ok, stream, seq of the oldest metric that is kept, {block…}, {extremes…}
--          '' and 0 for a job without metrics
--- @flags no-writes

local key = job_key(call.job_id)
local oldest = redis.call('XRANGE', key .. ':metrics', '-', '+', 'COUNT', 1)[1]
local blocks = redis.call('LRANGE', key .. ':metric-blocks', 0, -1)
local from = 1
while blocks[from] and tonumber(string.match(blocks[from], '^%d+')) <= call.after do
  from = from + 1
end
local to = math.min(#blocks, from + call.limit - 1)
return {
  'ok',
  redis.call('HGET', key, 'stream') or '',
  oldest and string.match(oldest[1], '^%d+') or '0',
  { unpack(blocks, from, to) },
  from <= to and redis.call('LRANGE', key .. ':metric-extremes', from - 1, to - 1) or {},
}
