-- Deletes the record of a dataset that no unfinished job names.
--
-- call: dataset_id, copy_of (source of the copy) or absent
-- Returns: ok, '1' deleted | '0' unknown
-- Errors: dataset_in_use
--- @flags allow-oom

local key = prefix .. ':dataset:' .. call.dataset_id
local text = redis.call('GET', key)
if not text then
  return { 'ok', '0' }
end
local user = redis.call('SRANDMEMBER', key .. ':jobs')
if user then
  return failure('dataset_in_use', 'job ' .. user .. ' trains on ' .. call.dataset_id .. ' and has not ended')
end
redis.call('DEL', key)
local document = cjson.decode(text)
local project = document.project
local index = index_key(project, 'datasets')
redis.call('ZREM', index, call.dataset_id)
redis.call('ZREM', index .. ':name:' .. document.name, call.dataset_id)
count_stored(project, 'dataset', call.dataset_id, 0)
local copies = index_key(project, 'copies')
if call.copy_of and redis.call('HGET', copies, call.copy_of) == call.dataset_id then
  redis.call('HDEL', copies, call.copy_of)
end
return { 'ok', '1' }
