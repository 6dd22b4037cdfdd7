-- Makes a share of a job.
--
-- call: share_id, hash (SHA-256 of the token, hex), job_id, description, created_at, life_ms, limit (maximum number of
-- shares of a job)
-- Returns: ok, end of the share (Unix time in ms)
-- Errors: job_not_found, too_many_shares

local job, problem = load_called_job()
if problem then
  return problem
end
local index = job_key(call.job_id) .. ':shares'
redis.call('ZREMRANGEBYSCORE', index, '-inf', string.format('%d', now_ms()))
if redis.call('ZCARD', index) >= call.limit and not redis.call('ZSCORE', index, call.share_id) then
  return failure('too_many_shares', 'a job may have ' .. call.limit .. ' shares; revoke one that is not needed')
end
local ends_at = string.format('%d', now_ms() + call.life_ms)
local key = prefix .. ':principal:' .. call.share_id
redis.call('HSET', key, 'hash', call.hash, 'job_id', call.job_id, 'project', job.project, 'description', call.description)
redis.call('HSET', key, 'created_at', call.created_at, 'expires_at', ends_at)
redis.call('PEXPIREAT', key, ends_at)
redis.call('SET', prefix .. ':share:' .. call.hash, call.share_id, 'PXAT', ends_at)
redis.call('ZADD', index, ends_at, call.share_id)
return { 'ok', ends_at }
