-- Acquires, renews or releases a leader lease, with state that passes from leader to leader.
--
-- call: name, holder, ttl_ms (0: releases it), state (text; absent: unchanged)
-- Returns: ok, '1', state      the caller is the leader for `ttl_ms` from now on; '' when no state was ever stored
--          ok, '0', holder     another holder is the leader; nothing is changed
--- @flags allow-oom

local key = prefix .. ':leader-lease:' .. call.name
local now = now_ms()
local known = redis.call('HMGET', key, 'holder', 'lease_until', 'state')
if known[1] and known[1] ~= call.holder and tonumber(known[2]) > now then
  return { 'ok', '0', known[1] }
end
redis.call('HSET', key, 'holder', call.holder, 'lease_until', string.format('%d', now + call.ttl_ms))
if call.state then
  redis.call('HSET', key, 'state', call.state)
end
return { 'ok', '1', call.state or known[3] or '' }
