-- Takes or keeps an office that one program at a time has, and what its holder remembers.
--
-- call: office, holder, ttl_ms (0: gives it up), memory (text; absent: stays as it is)
-- Returns: ok, '1', memory     the caller has it for `ttl_ms` from now on; '' when nothing was ever remembered
--          ok, '0', holder     somebody else has it; nothing is changed
--- @include job

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
