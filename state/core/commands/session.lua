-- Browser sessions of API keys, and the codes that begin them. Needs job.lua.

-- Maximum number of codes, and of sessions, of one key.
local SESSIONS_KEPT = 100

-- Notes in the index of its key that the code or session (kind) with this hash ends at a time. Beyond the maximum, those end that would end
-- first.
local function index_session(kind, key_id, hash, ends_at)
  local index = prefix .. ':' .. kind .. 's:' .. key_id
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
local function prolong_session(key_id, hash, ends_at)
  local key = prefix .. ':session:' .. hash
  redis.call('HSET', key, 'expires_at', string.format('%d', ends_at))
  redis.call('PEXPIREAT', key, string.format('%d', ends_at))
  index_session('session', key_id, hash, ends_at)
end

-- Ends all sessions and codes of a key.
local function end_sessions(key_id)
  for _, kind in ipairs({ 'sign-in-code', 'session' }) do
    local index = prefix .. ':' .. kind .. 's:' .. key_id
    for _, hash in ipairs(redis.call('ZRANGE', index, 0, -1)) do
      redis.call('DEL', prefix .. ':' .. kind .. ':' .. hash)
    end
    redis.call('DEL', index)
  end
end
