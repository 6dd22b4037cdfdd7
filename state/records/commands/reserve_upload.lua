-- Counts the size of an incomplete upload as storage of its project.
--
-- call: upload_id, project, bytes (0: releases it)
-- Returns: ok
-- Errors: storage_quota_exceeded

local reserved = reserved_bytes(call.project, call.upload_id)
-- A restored upload existed before, so no quota refuses it.
local more = redis.call('EXISTS', prefix .. ':restore') == 0 and call.bytes - reserved or 0
local refused = more > 0 and storage_error(call.project, more)
if refused then
  return refused
end
if call.bytes > 0 then
  know_project(call.project)
end
count_stored(call.project, 'upload', call.upload_id, call.bytes)
return { 'ok' }
