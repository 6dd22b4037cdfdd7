-- Returns a request for a sample to its pool: another worker begins anew.
--
-- call: id, worker
-- Returns: ok     also when the worker has it no more
-- Channels: <prefix>:pool:<pool>:samples
--- @flags allow-oom

if redis.call('HGET', sample_key(call.id), 'worker') == call.worker then
  return_sample(call.id)
end
return { 'ok' }
