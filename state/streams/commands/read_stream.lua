-- Reads the job's stream: the first entries after a position, or the newest before one, of each kind, at one moment.
--
-- call: job_id, kinds ['event' | 'metric' | 'log'], limit, after {stream, seq, stamp} or absent (from the beginning),
--       or instead newest: true, before {stream, seq, stamp} or absent (from the end): newest first,
--       steps {from, to (absent: no end)} or absent: metrics of blocks (report.lua) without these steps are skipped
-- Returns: ok, stream, {entry…} …
--          the stream's name ('' for an unknown job) and one list for each of `kinds`; an entry is {id, {field,
--          value…}}
-- Errors: position_lost     the job has another stream than that of the position, or the stream has lost its end
--
-- All kinds are read in one command. An event and a later metric may arrive between two reads; a reader that continued
-- after the metric would never see the event.
--- @flags no-writes

local key = job_key(call.job_id)
local record = redis.call('HMGET', key, 'stream', 'seq')
local stream, last = record[1] or '', tonumber(record[2] or 0)

-- Returns whether the entry of a position was lost. Another entry may have its number now. If the entry was dropped
-- since, the entries before it that are kept decide: stamps only grow, so none of them is later. Without such entries,
-- nothing is kept that replaced the lost ones either.
local function is_lost(position)
  if position.stream ~= stream or position.seq > last then
    return true
  end
  for _, kind in ipairs({ 'event', 'metric', 'log' }) do
    local newest = redis.call('XREVRANGE', key .. ':' .. kind .. 's', string.format('%d', position.seq), '-', 'COUNT', 1)[1]
    if newest then
      local seq, stamp = string.match(newest[1], '^(%d+)-(%d+)$')
      if tonumber(stamp) > position.stamp or (tonumber(seq) == position.seq and tonumber(stamp) ~= position.stamp) then
        return true
      end
    end
  end
  return false
end

local position = call.after or call.before
if stream ~= '' and position and is_lost(position) then
  return failure('position_lost', 'the position was lost with the data of Redis: start again without `after`')
end

-- Returns the first entries of a kind from `first` on, in the runs of blocks that have wanted steps.
local function read_blocks(kind, first, steps)
  local blocks = redis.call('LRANGE', key .. ':metric-blocks', 0, -1)
  local from
  for i = 1, #blocks + 1 do
    local begin, least, greatest = string.match(blocks[i] or '', '^(%d+) (%d+) (%d+)')
    local wanted = begin and tonumber(greatest) >= steps.from and tonumber(least) <= (steps.to or math.huge)
    if wanted then
      from = from or tonumber(begin)
    elseif from then
      local to = begin and string.format('%d', begin - 1) or '+'
      local found = redis.call('XRANGE', kind, string.format('%d', math.max(first, from)), to, 'COUNT', call.limit)
      if #found > 0 then
        return found
      end
      from = nil
    end
  end
  return {}
end

local function read(kind)
  local entries = key .. ':' .. kind .. 's'
  if call.newest then
    return redis.call('XREVRANGE', entries, call.before and string.format('%d', call.before.seq - 1) or '+', '-', 'COUNT', call.limit)
  end
  local first = call.after and call.after.seq + 1 or 0
  if kind == 'metric' and call.steps then
    return read_blocks(entries, first, call.steps)
  end
  return redis.call('XRANGE', entries, string.format('%d', first), '+', 'COUNT', call.limit)
end

local reply = { 'ok', stream }
for _, kind in ipairs(call.kinds) do
  reply[#reply + 1] = read(kind)
end
return reply
