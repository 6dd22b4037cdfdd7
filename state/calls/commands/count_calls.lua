-- Raises the counters of a session's calls; a counter never falls. The bytes of objects are added when a counter rises.
-- A counter that is absent although another one exists has been lost, so a new one is written also if it is 0.
--
-- call: job_id, appended, answered (numbers, may be absent), finished (may be absent; true: the last call is a finish),
--       bytes, is_total (true: `bytes` are those of all calls and results)
-- Returns: ok, appended, answered, finished ('1' or '0')
-- Errors: job_not_found
-- Events: publishes the counters on <prefix>:job:<id>:calls when one of them has risen

local project = redis.call('HGET', job_key(call.job_id), 'project')
if not project then
  return failure('job_not_found', 'there is no job ' .. call.job_id)
end
local key = job_key(call.job_id) .. ':calls'
local rises = false

local function raise(name)
  local known = redis.call('HGET', key, name)
  local now = tonumber(known or 0)
  local to = call[name]
  if to and (not known or to > now) then
    redis.call('HSET', key, name, string.format('%.0f', to))
    rises = rises or to > now
    return to
  end
  return now
end

local appended, answered = raise('appended'), raise('answered')
if call.finished then
  redis.call('HSET', key, 'finished', '1')
elseif call.finished == false then
  redis.call('HSETNX', key, 'finished', '0')
end
if call.is_total then
  redis.call('HSET', key, 'bytes', string.format('%.0f', call.bytes))
elseif rises then
  redis.call('HINCRBY', key, 'bytes', string.format('%.0f', call.bytes))
end
if rises or call.is_total then
  count_stored(project, 'checkpoint', call.job_id, tonumber(redis.call('HGET', key, 'bytes')))
  redis.call('PUBLISH', key, appended .. ' ' .. answered)
end
return { 'ok', string.format('%.0f', appended), string.format('%.0f', answered), redis.call('HGET', key, 'finished') or '0' }
