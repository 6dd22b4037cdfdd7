-- Reads the job's stream: the first entries after a sequence number, of each kind, as they are at one moment.
--
-- call: job_id, after, limit, kinds ['event' | 'metric' | 'log']
-- Returns: ok, {entry…} …     one list for each of `kinds`; an entry is {id, {field, value…}}
-- Reading both in one command matters: an event and a later metric may arrive between two reads, and a reader
-- that went on from the metric would never see the event.
--- @include job

local reply = { 'ok' }
for _, kind in ipairs(call.kinds) do
  local stream = job_key(call.job_id) .. ':' .. kind .. 's'
  local from = '(' .. string.format('%d', call.after) .. '-0'
  reply[#reply + 1] = redis.call('XRANGE', stream, from, '+', 'COUNT', call.limit)
end
return reply
