-- Deletes the record of a job that has ended, ends its shares, and records that its objects must be removed,
-- atomically.
--
-- call: job_id, artifacts (true: its checkpoints and exports are removed as well), if_versions [state_version] or
-- absent
-- Returns: ok
-- Errors: job_not_found, invalid_state, version_mismatch, checkpoint_held, checkpoint_pinned
-- Events: publishes the ids of its shares on <prefix>:principals:changed
--- @flags allow-oom

local job, problem = load_called_job()
if problem then
  return problem
end
if job.final ~= '1' then
  return failure('invalid_state', 'the job is ' .. job.state .. '; cancel it first')
end
local key = job_key(call.job_id)
local ids = {}
local documents = redis.call('HGETALL', key .. ':checkpoints')
for i = 1, #documents, 2 do
  local id = documents[i]
  ids[#ids + 1] = id
  if call.artifacts and cjson.decode(documents[i + 1]).pinned then
    return failure('checkpoint_pinned', id .. ' is pinned; unpin it first, or keep the artifacts')
  end
  local held = held_error(id, true)
  if held then
    return held
  end
end

local project = job.project
local rest = { artifacts = call.artifacts, project = project }
redis.call('HSET', prefix .. ':deleted-jobs', call.job_id, cjson.encode(rest))
local jobs = index_key(project, 'jobs')
redis.call('ZREM', jobs, call.job_id)
redis.call('ZREM', jobs .. ':state:' .. job.state, call.job_id)
for _, index in ipairs(cjson.decode(job.indexes)) do
  redis.call('ZREM', jobs .. ':' .. index, call.job_id)
end
for _, id in ipairs(ids) do
  redis.call('HDEL', prefix .. ':checkpoint-jobs', id)
  redis.call('ZREM', index_key(project, 'checkpoints'), id)
  redis.call('DEL', holds_key(id))
  count_stored(project, 'checkpoint', id, 0)
end
count_stored(project, 'checkpoint', call.job_id, 0)
if job.base ~= '' then
  redis.call('SREM', base_users_key(job.base), call.job_id)
end
for _, share_id in ipairs(redis.call('ZRANGE', key .. ':shares', 0, -1)) do
  end_share(call.job_id, share_id)
end
forget_world(call.job_id)
delete_forwards(call.job_id, job.forwards)
local parts = { '', ':history', ':events', ':metrics', ':metric-blocks', ':metric-extremes', ':logs', ':attempts', ':calls', ':checkpoints', ':checkpoint-order' }
for _, part in ipairs(parts) do
  redis.call('UNLINK', key .. part)
end
return { 'ok' }
