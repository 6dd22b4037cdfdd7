-- Reads messages of workers to a caller, removes those that it has read before, and records that the caller is alive.
--
-- call: caller, after (position of the last message that was read; '' for none), limit, max_bytes (the message that
-- exceeds them is the last one)
-- Returns: ok, {position, id of the request, message (JSON)}…
--- @flags allow-oom

local key = caller_key(call.caller)
local messages = key .. ':messages'
if call.after ~= '' then
  for _, entry in ipairs(redis.call('XRANGE', messages, '-', call.after)) do
    redis.call('XDEL', messages, entry[1])
    redis.call('HINCRBY', key, 'bytes', -#entry[2][4])
  end
end
local reply = { 'ok' }
local bytes = 0
for _, entry in ipairs(redis.call('XRANGE', messages, '-', '+', 'COUNT', call.limit)) do
  reply[#reply + 1] = { entry[1], entry[2][2], entry[2][4] }
  bytes = bytes + #entry[2][4]
  if bytes > call.max_bytes then
    break
  end
end
if #reply == 1 then
  redis.call('HSET', key, 'bytes', 0)
end
redis.call('PEXPIRE', key, CALLER_KEPT_MS)
redis.call('PEXPIRE', messages, CALLER_KEPT_MS)
return reply
