-- Deletes the record of a model that no unfinished job names.
--
-- call: model_id, copy_of (source of the copy) or absent
-- Returns: ok, '1' deleted | '0' unknown
-- Errors: model_in_use
--- @flags allow-oom

local key = prefix .. ':model:' .. call.model_id
local text = redis.call('GET', key)
if not text then
  return { 'ok', '0' }
end
local user = redis.call('SRANDMEMBER', key .. ':jobs')
if user then
  return failure('model_in_use', 'job ' .. user .. ' needs ' .. call.model_id .. ' and has not ended')
end
redis.call('DEL', key)
local document = cjson.decode(text)
local project = document.project
local index = index_key(project, 'models')
redis.call('ZREM', index, call.model_id)
redis.call('ZREM', index .. ':name:' .. document.name, call.model_id)
count_stored(project, 'model', call.model_id, 0)
local copies = index_key(project, 'copies')
if call.copy_of and redis.call('HGET', copies, call.copy_of) == call.model_id then
  redis.call('HDEL', copies, call.copy_of)
end
return { 'ok', '1' }
