-- Replaces a field of a webhook if it has not changed since the caller read it; after a conflict the caller reads
-- again.
--
-- call: webhook_id, project, field ('document' | 'secrets'), from (JSON as it was read), to (JSON)
-- Returns: ok, '1' replaced | '0' it has changed, or the webhook does not exist

local key = prefix .. ':webhook:' .. call.webhook_id
local known = redis.call('HMGET', key, 'project', call.field)
if known[1] ~= call.project or known[2] ~= call.from then
  return { 'ok', '0' }
end
redis.call('HSET', key, call.field, call.to)
-- The change may have fixed the cause of the failures.
redis.call('HDEL', key, 'failing_since')
return { 'ok', '1' }
