-- A person keeps a checkpoint from the retention rule, or no longer.
--
-- call: checkpoint_id, pinned (boolean), at
-- Returns: ok, the checkpoint (JSON) as it is now, or '' when there is none
--- @include job
--- @include use
--- @include checkpoint

local job_id = redis.call('HGET', prefix .. ':checkpoint-jobs', call.checkpoint_id)
if not is_recorded(call.checkpoint_id) then
  return { 'ok', '' }
end
return { 'ok', mark_checkpoint(job_id, call.checkpoint_id, 'pinned', call.pinned) }
