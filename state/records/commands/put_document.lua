-- Stores the record of a dataset, a model or a sweep.
--
-- call: kind ('dataset' | 'model' | 'sweep'), id, project, name, document (JSON), bytes, copy_of (source of the copy)
--       or absent, upload_id (source of a dataset), ttl_ms, or absent; base (model under an adapter) or absent
-- Returns: ok, '1' recorded | '0' the upload was made a dataset before, which is not recorded again:
--          it may have been deleted since
-- Errors: storage_quota_exceeded, model_not_found (the base was deleted)

local made = call.upload_id and prefix .. ':upload:' .. call.upload_id
if made and redis.call('EXISTS', made) == 1 then
  return { 'ok', '0' }
end
local key = prefix .. ':' .. call.kind .. ':' .. call.id
-- A restored record existed before, so no quota refuses it; the same holds for a repeat.
local is_new = redis.call('EXISTS', prefix .. ':restore') == 0 and redis.call('EXISTS', key) == 0
-- The storage of an upload is already reserved.
local more = call.bytes - (made and reserved_bytes(call.project, call.upload_id) or 0)
local refused = is_new and more > 0 and storage_error(call.project, more)
if refused then
  return refused
end
if call.base then
  -- Records are restored in any order.
  if is_new and redis.call('EXISTS', prefix .. ':model:' .. call.base) == 0 then
    return failure('model_not_found', 'there is no model ' .. call.base)
  end
  redis.call('SADD', prefix .. ':model:' .. call.base .. ':adapters', call.id)
end
redis.call('SET', key, call.document)
local index = index_key(call.project, call.kind .. 's')
redis.call('ZADD', index, 0, call.id)
redis.call('ZADD', index .. ':name:' .. call.name, 0, call.id)
know_project(call.project)
if call.copy_of then
  -- The first copy stays because jobs name it already.
  redis.call('HSETNX', index_key(call.project, 'copies'), call.copy_of, call.id)
end
count_stored(call.project, call.kind, call.id, call.bytes)
if made then
  redis.call('SET', made, call.id, 'PX', call.ttl_ms)
  count_stored(call.project, 'upload', call.upload_id, 0)
end
return { 'ok', '1' }
