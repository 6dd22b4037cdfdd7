-- Raises the counters of a session's calls; a counter never falls. The bytes of objects are added when a counter rises.
--
-- call: job_id, appended, answered (numbers, may be absent), finished (true: the last call is a finish), bytes
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
  local now = tonumber(redis.call('HGET', key, name) or 0)
  local to = call[name]
  if to and to > now then
    redis.call('HSET', key, name, string.format('%.0f', to))
    rises = true
    return to
  end
  return now
end

local appended, answered = raise('appended'), raise('answered')
if call.finished then
  redis.call('HSET', key, 'finished', '1')
end
if rises then
  local bytes = redis.call('HINCRBY', key, 'bytes', string.format('%.0f', call.bytes))
  count_stored(project, 'checkpoint', call.job_id, bytes)
  redis.call('PUBLISH', key, appended .. ' ' .. answered)
end
return { 'ok', string.format('%.0f', appended), string.format('%.0f', answered), redis.call('HGET', key, 'finished') or '0' }
