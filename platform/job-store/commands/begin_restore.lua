-- Begins to rebuild the records of an empty store, or goes on where a rebuild was cut off.
--
-- call: at
-- Returns: ok
-- Errors: job_store_not_empty
--- @include job

local key = prefix .. ':restore'
if redis.call('EXISTS', key) == 0 then
  local jobs = redis.call('ZCARD', index_key('default', 'jobs'))
  for _, project in ipairs(redis.call('SMEMBERS', prefix .. ':projects')) do
    jobs = jobs + redis.call('ZCARD', index_key(project, 'jobs'))
  end
  if jobs > 0 then
    return failure('job_store_not_empty', 'there are ' .. jobs .. ' jobs in it')
  end
  redis.call('SET', key, call.at)
end
return { 'ok' }
