-- Keeps a checkpoint that is recorded from being removed while somebody reads it, for a while.
--
-- call: checkpoint_id, holder, ttl_ms
-- Returns: ok, '1' held | '0' there is none of this id any more
--- @include job
--- @include use
--- @include checkpoint

if not is_recorded(call.checkpoint_id) then
  return { 'ok', '0' }
end
hold_checkpoint(call.checkpoint_id, call.holder, call.ttl_ms)
return { 'ok', '1' }
