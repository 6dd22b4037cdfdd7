-- Records a webhook.
--
-- call: webhook_id, project, document (JSON), secrets (JSON), limit (maximum number of webhooks of a project)
-- Returns: ok     also when it exists already (a repeated call): nothing is changed
-- Errors: too_many_webhooks

local index = prefix .. ':project:' .. call.project .. ':webhooks'
local key = prefix .. ':webhook:' .. call.webhook_id
if redis.call('EXISTS', key) == 1 then
  return { 'ok' }
end
if redis.call('ZCARD', index) >= call.limit then
  return failure('too_many_webhooks', 'a project may have ' .. call.limit .. ' webhooks; delete one that is not needed')
end
redis.call('HSET', key, 'project', call.project, 'document', call.document, 'secrets', call.secrets)
redis.call('ZADD', index, 0, call.webhook_id)
return { 'ok' }
