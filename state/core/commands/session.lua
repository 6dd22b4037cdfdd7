-- Browser sessions of principals (API keys, shares and users), the codes that begin them, and shares. Needs job.lua.

-- Maximum number of codes, and of sessions, of one principal.
local SESSIONS_KEPT = 100

-- Notes in the index of its principal that the code or session (kind) with this hash ends at a time. Beyond the
-- maximum, those end that would end first.
local function index_session(kind, principal_id, hash, ends_at)
  local index = prefix .. ':' .. kind .. 's:' .. principal_id
  redis.call('ZREMRANGEBYSCORE', index, '-inf', string.format('%d', now_ms()))
  redis.call('ZADD', index, string.format('%d', ends_at), hash)
  for _, first in ipairs(redis.call('ZRANGE', index, 0, -1 - SESSIONS_KEPT)) do
    redis.call('DEL', prefix .. ':' .. kind .. ':' .. first)
    redis.call('ZREM', index, first)
  end
  local last = redis.call('ZRANGE', index, -1, -1, 'WITHSCORES')
  redis.call('PEXPIREAT', index, last[2])
end

-- Sets the end of a session.
local function prolong_session(principal_id, hash, ends_at)
  local key = prefix .. ':session:' .. hash
  redis.call('HSET', key, 'expires_at', string.format('%d', ends_at))
  redis.call('PEXPIREAT', key, string.format('%d', ends_at))
  index_session('session', principal_id, hash, ends_at)
end

-- Ends all sessions and codes of a principal.
local function end_sessions(principal_id)
  for _, kind in ipairs({ 'sign-in-code', 'session' }) do
    local index = prefix .. ':' .. kind .. 's:' .. principal_id
    for _, hash in ipairs(redis.call('ZRANGE', index, 0, -1)) do
      redis.call('DEL', prefix .. ':' .. kind .. ':' .. hash)
    end
    redis.call('DEL', index)
  end
end

-- API keys have records of their own; those of other principals expire.
local function principal_exists(principal_id)
  return redis.call('HEXISTS', prefix .. ':api-keys', principal_id) == 1
    or redis.call('EXISTS', prefix .. ':principal:' .. principal_id) == 1
end

-- Ends a share of a job with its sessions.
local function end_share(job_id, share_id)
  local key = prefix .. ':principal:' .. share_id
  local hash = redis.call('HGET', key, 'hash')
  if hash then
    redis.call('DEL', key, prefix .. ':share:' .. hash)
  end
  redis.call('ZREM', job_key(job_id) .. ':shares', share_id)
  end_sessions(share_id)
  redis.call('PUBLISH', prefix .. ':principals:changed', share_id)
end
