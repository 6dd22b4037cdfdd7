-- Sets the quota of a project; existing resources stay.
--
-- call: project, quota {max_jobs, max_ranks, max_storage_bytes}: each may be absent
-- Returns: ok

local key = index_key(call.project, 'quota')
redis.call('DEL', key)
for name, max in pairs(call.quota) do
  redis.call('HSET', key, name, string.format('%.0f', max))
end
know_project(call.project)
return { 'ok' }
