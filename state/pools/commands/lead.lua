-- Acquires, renews or releases a leader lock, with state that passes from leader to leader.
--
-- call: office, holder, ttl_ms (0: releases it), memory (text; absent: unchanged)
-- Returns: ok, '1', memory     the caller is the leader for `ttl_ms` from now on; '' when no memory was ever stored
--          ok, '0', holder     another holder is the leader; nothing is changed

local key = prefix .. ':office:' .. call.office
local now = now_ms()
local known = redis.call('HMGET', key, 'holder', 'until', 'memory')
if known[1] and known[1] ~= call.holder and tonumber(known[2]) > now then
  return { 'ok', '0', known[1] }
end
redis.call('HSET', key, 'holder', call.holder, 'until', string.format('%d', now + call.ttl_ms))
if call.memory then
  redis.call('HSET', key, 'memory', call.memory)
end
return { 'ok', '1', call.memory or known[3] or '' }
