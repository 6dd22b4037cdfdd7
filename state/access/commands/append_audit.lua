-- Appends to a project's audit log. Entries above the limit or past the retention period are dropped, oldest first.
--
-- call: project, entry (JSON), keep (number), keep_ms
-- Returns: ok, id

local log = index_key(call.project, 'audit-log')
local id = redis.call('XADD', log, 'MAXLEN', '~', call.keep, '*', 'entry', call.entry)
redis.call('XTRIM', log, 'MINID', '~', string.format('%d', now_ms() - call.keep_ms))
return { 'ok', id }
