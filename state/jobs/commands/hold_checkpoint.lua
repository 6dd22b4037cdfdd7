-- Holds a recorded checkpoint against removal for `ttl_ms`.
--
-- call: checkpoint_id, holder, ttl_ms
-- Returns: ok, '1' held | '0' the checkpoint does not exist

if not is_recorded(call.checkpoint_id) then
  return { 'ok', '0' }
end
hold_checkpoint(call.checkpoint_id, call.holder, call.ttl_ms)
return { 'ok', '1' }
