-- Stores the record of a dataset or a model.
--
-- call: kind ('dataset' | 'model'), id, project, document (JSON), bytes, copy_of (what a dataset was copied from) or absent
-- Returns: ok
-- Errors: storage_quota_exceeded
--- @include job
--- @include use

local key = prefix .. ':' .. call.kind .. ':' .. call.id
-- What is put back was there before, whatever the quota is now; so was one that is put again.
local is_new = redis.call('EXISTS', prefix .. ':restore') == 0 and redis.call('EXISTS', key) == 0
local refused = is_new and storage_error(call.project, call.bytes)
if refused then
  return refused
end
redis.call('SET', key, call.document)
redis.call('ZADD', index_key(call.project, call.kind .. 's'), 0, call.id)
know_project(call.project)
if call.copy_of then
  -- The first one stays: jobs name it already.
  redis.call('HSETNX', index_key(call.project, 'copies'), call.copy_of, call.id)
end
count_stored(call.project, call.kind, call.id, call.bytes)
return { 'ok' }
