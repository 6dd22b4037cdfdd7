-- Reads the job's stream: the first entries after a position, of each kind, at one moment.
--
-- call: job_id, after {stream, seq, stamp} or absent (from the beginning), limit, kinds ['event' | 'metric' | 'log']
-- Returns: ok, stream, {entry…} …     its name ('' for an unknown job) and one list for each of `kinds`; an entry is {id, {field,
-- value…}}
-- Errors: position_lost     the job has another stream than that of `after`, or the stream has lost its end
-- All kinds are read in one command because an event and a later metric may arrive between two reads, and a reader that continued after
-- the metric would never see the event.
--- @flags no-writes

local key = job_key(call.job_id)
local record = redis.call('HMGET', key, 'stream', 'seq')
local stream, last = record[1] or '', tonumber(record[2] or 0)

-- Returns whether the entry of a position was lost. Another entry may have its number now. If the entry was dropped since, the entries
-- before it that are kept decide: stamps only grow, so none of them is later. Without such entries, nothing is kept that replaced the
-- lost ones either.
local function is_lost(after)
  if after.stream ~= stream or after.seq > last then
    return true
  end
  for _, kind in ipairs({ 'event', 'metric', 'log' }) do
    local newest = redis.call('XREVRANGE', key .. ':' .. kind .. 's', string.format('%d', after.seq), '-', 'COUNT', 1)[1]
    if newest then
      local seq, stamp = string.match(newest[1], '^(%d+)-(%d+)$')
      if tonumber(stamp) > after.stamp or (tonumber(seq) == after.seq and tonumber(stamp) ~= after.stamp) then
        return true
      end
    end
  end
  return false
end

if stream ~= '' and call.after and is_lost(call.after) then
  return failure('position_lost', 'the position was lost with the data of Redis: start again without `after`')
end
local from = call.after and string.format('%d', call.after.seq + 1) or '-'
local reply = { 'ok', stream }
for _, kind in ipairs(call.kinds) do
  reply[#reply + 1] = redis.call('XRANGE', key .. ':' .. kind .. 's', from, '+', 'COUNT', call.limit)
end
return reply
