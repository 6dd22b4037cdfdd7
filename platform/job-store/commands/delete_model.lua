-- Forgets a model that no unfinished job names.
--
-- call: model_id, copy_of (what it was copied from) or absent
-- Returns: ok, '1' deleted | '0' unknown
-- Errors: model_in_use
--- @include job
--- @include use

local key = prefix .. ':model:' .. call.model_id
local text = redis.call('GET', key)
if not text then
  return { 'ok', '0' }
end
local jobs = redis.call('SCARD', key .. ':jobs')
if jobs > 0 then
  return failure('model_in_use', call.model_id .. ' is used by ' .. jobs .. ' job(s) that have not ended')
end
redis.call('DEL', key)
local project = project_of(cjson.decode(text))
redis.call('ZREM', index_key(project, 'models'), call.model_id)
count_stored(project, 'model', call.model_id, 0)
local copies = index_key(project, 'copies')
if call.copy_of and redis.call('HGET', copies, call.copy_of) == call.model_id then
  redis.call('HDEL', copies, call.copy_of)
end
return { 'ok', '1' }
