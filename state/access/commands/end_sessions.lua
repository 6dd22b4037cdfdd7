-- Ends all browser sessions and sign-in codes of an API key.
--
-- call: key_id
-- Returns: ok
-- Events: publishes the id of the key on <prefix>:api-keys:changed
--- @flags allow-oom

end_sessions(call.key_id)
redis.call('PUBLISH', prefix .. ':api-keys:changed', call.key_id)
return { 'ok' }
