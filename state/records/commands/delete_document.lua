-- Deletes the record of a dataset, a model or a sweep that no unfinished job names.
--
-- call: kind ('dataset' | 'model' | 'sweep'), id, copy_of (source of the copy) or absent
-- Returns: ok, '1' deleted | '0' unknown
-- Errors: dataset_in_use, model_in_use
--- @flags allow-oom

local kind, id = call.kind, call.id
local key = prefix .. ':' .. kind .. ':' .. id
local text = redis.call('GET', key)
if not text then
  return { 'ok', '0' }
end
local user = redis.call('SRANDMEMBER', key .. ':jobs')
if user then
  return failure(kind .. '_in_use', 'job ' .. user .. ' needs ' .. id .. ' and has not ended')
end
local adapted = redis.call('SRANDMEMBER', key .. ':adapters')
if adapted then
  return failure(kind .. '_in_use', 'the adapters of ' .. adapted .. ' need ' .. id .. '; delete ' .. adapted .. ' first')
end
redis.call('DEL', key)
local document = cjson.decode(text)
local project = document.project
if document.base then
  redis.call('SREM', prefix .. ':model:' .. document.base .. ':adapters', id)
end
local index = index_key(project, kind .. 's')
redis.call('ZREM', index, id)
redis.call('ZREM', index .. ':name:' .. document.name, id)
count_stored(project, kind, id, 0)
local copies = index_key(project, 'copies')
if call.copy_of and redis.call('HGET', copies, call.copy_of) == id then
  redis.call('HDEL', copies, call.copy_of)
end
return { 'ok', '1' }
