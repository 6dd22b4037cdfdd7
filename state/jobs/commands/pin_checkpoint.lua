-- Exempts a checkpoint from the retention rule at a user's request, or ends the exemption.
--
-- call: checkpoint_id, pinned (boolean), at
-- Returns: ok, the changed checkpoint (JSON), or '' when it does not exist

local job_id = redis.call('HGET', prefix .. ':checkpoint-jobs', call.checkpoint_id)
if not is_recorded(call.checkpoint_id) then
  return { 'ok', '' }
end
return { 'ok', mark_checkpoint(job_id, call.checkpoint_id, 'pinned', call.pinned) }
