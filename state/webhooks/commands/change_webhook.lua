-- Replaces a field of a webhook if it still is what the caller has read: of two changes at once the second reads anew.
--
-- call: webhook_id, project, field ('document' | 'secrets'), from (JSON as it was read), to (JSON)
-- Returns: ok, '1' replaced | '0' it was another, or there is no such webhook
--- @include job

local key = prefix .. ':webhook:' .. call.webhook_id
local known = redis.call('HMGET', key, 'project', call.field)
if known[1] ~= call.project or known[2] ~= call.from then
  return { 'ok', '0' }
end
redis.call('HSET', key, call.field, call.to)
-- Whoever changes it may have put right what was wrong.
redis.call('HDEL', key, 'failing_since')
return { 'ok', '1' }
