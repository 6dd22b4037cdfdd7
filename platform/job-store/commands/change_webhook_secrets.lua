-- Replaces a webhook's secrets if they still are what the caller has read: of two rotations at once the second reads anew.
--
-- call: webhook_id, project, from (JSON as it was read), to (JSON)
-- Returns: ok, '1' replaced | '0' they were others, or there is no such webhook
--- @include job

local key = prefix .. ':webhook:' .. call.webhook_id
local known = redis.call('HMGET', key, 'project', 'secrets')
if known[1] ~= call.project or known[2] ~= call.from then
  return { 'ok', '0' }
end
redis.call('HSET', key, 'secrets', call.to)
return { 'ok', '1' }
