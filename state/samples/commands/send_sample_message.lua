-- Passes a message of a worker to the caller of a request for a sample, unless the caller has too many unread ones.
--
-- call: id, worker, message (JSON), last (true: the request has ended), max_bytes (of the caller's unread messages)
-- Returns: ok, 'sent'
--          ok, 'full'     the caller has to read first
--          ok, 'gone'     nobody waits for it, or another worker has it
-- Channels: <prefix>:sample-caller:<caller>
--- @flags allow-oom

local known = redis.call('HMGET', sample_key(call.id), 'worker', 'caller')
if known[1] ~= call.worker then
  return { 'ok', 'gone' }
end
if tonumber(redis.call('HGET', caller_key(known[2]), 'bytes') or 0) >= call.max_bytes then
  return { 'ok', 'full' }
end
local delivered = tell_caller(call.id, call.message)
if call.last or not delivered then
  forget_sample(call.id)
end
return { 'ok', delivered and 'sent' or 'gone' }
