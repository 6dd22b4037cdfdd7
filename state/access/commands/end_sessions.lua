-- Ends all browser sessions and sign-in codes of a principal.
--
-- call: principal_id
-- Returns: ok
-- Events: publishes the id of the principal on <prefix>:principals:changed
--- @flags allow-oom

end_sessions(call.principal_id)
redis.call('PUBLISH', prefix .. ':principals:changed', call.principal_id)
return { 'ok' }
