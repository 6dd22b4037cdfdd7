-- Replaces the record of a dataset, a model or a sweep if it has not changed since the caller read it.
--
-- call: kind ('dataset' | 'model' | 'sweep'), id, project, from (JSON as it was read), to (JSON), name_before, name
-- Returns: ok, '1' replaced | '0' it has changed, or does not exist

local key = prefix .. ':' .. call.kind .. ':' .. call.id
if redis.call('GET', key) ~= call.from then
  return { 'ok', '0' }
end
redis.call('SET', key, call.to)
local names = index_key(call.project, call.kind .. 's:name:')
redis.call('ZREM', names .. call.name_before, call.id)
redis.call('ZADD', names .. call.name, 0, call.id)
return { 'ok', '1' }
