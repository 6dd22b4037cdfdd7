-- Ends a share of a job with its sessions.
--
-- call: job_id, share_id
-- Returns: ok, '1' revoked | '0' the job has no such share
-- Events: publishes the id of the share on <prefix>:principals:changed
--- @flags allow-oom

if not redis.call('ZSCORE', job_key(call.job_id) .. ':shares', call.share_id) then
  return { 'ok', '0' }
end
end_share(call.job_id, call.share_id)
return { 'ok', '1' }
