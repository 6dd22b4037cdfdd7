-- Ends a world of a job. A world that was sealed later stays.
--
-- call: job_id, world_id
-- Returns: ok
--- @flags allow-oom

if redis.call('HGET', world_key(call.job_id), 'id') == call.world_id then
  forget_world(call.job_id)
end
return { 'ok' }
