-- A person keeps a checkpoint from the retention rule, or no longer.
--
-- call: checkpoint_id, pinned (boolean), at
-- Returns: ok, the checkpoint (JSON) as it is now, or '' when there is none
--- @include job

local job_id = redis.call('HGET', prefix .. ':checkpoint-jobs', call.checkpoint_id)
local key = job_id and job_key(job_id) .. ':checkpoints'
local text = key and redis.call('HGET', key, call.checkpoint_id)
if not text then
  return { 'ok', '' }
end
-- Only this field is changed in the text: numbers must not pass through Lua's floating point.
local changed = string.gsub(text, '"pinned":%a+', '"pinned":' .. tostring(call.pinned), 1)
redis.call('HSET', key, call.checkpoint_id, changed)
return { 'ok', changed }
