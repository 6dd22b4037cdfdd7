-- Reads the job's stream: the first entries after a position, of each kind, as they are at one moment.
--
-- call: job_id, after {stream, seq} or absent (from the beginning), limit, kinds ['event' | 'metric' | 'log']
-- Returns: ok, stream, {entry…} …     its name ('' for an unknown job) and one list for each of `kinds`; an entry is {id, {field, value…}}
-- Errors: position_lost     the stream is another one than that of `after`, or has lost its end
-- Reading all in one command matters: an event and a later metric may arrive between two reads, and a reader
-- that went on from the metric would never see the event.
--- @include job

local key = job_key(call.job_id)
local record = redis.call('HMGET', key, 'stream', 'seq')
local stream, last = record[1] or '', tonumber(record[2] or 0)
local after = call.after or { stream = stream, seq = 0 }
if stream ~= '' and (after.stream ~= stream or after.seq > last) then
  return failure('position_lost', 'what happened to the job up to there was lost with Redis: begin anew, without `after`')
end
local reply = { 'ok', stream }
for _, kind in ipairs(call.kinds) do
  local from = '(' .. string.format('%d', after.seq) .. '-0'
  reply[#reply + 1] = redis.call('XRANGE', key .. ':' .. kind .. 's', from, '+', 'COUNT', call.limit)
end
return reply
