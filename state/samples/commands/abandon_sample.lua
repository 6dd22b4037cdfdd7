-- Forgets a request for a sample that nobody waits for any more. Its worker learns it with the next renewal.
--
-- call: id
-- Returns: ok
--- @flags allow-oom

forget_sample(call.id)
return { 'ok' }
