-- Reads jobs, each consistent in itself. A record that the caller already has is not sent again.
--
-- call: ids [job id], known [tag of the job's last read, '' for none]
-- Returns: ok, {}…                      an unknown id
--              {tag}                    nothing has changed since
--              {tag, record, history}   in the order of ids
--- @flags no-writes

-- Returns a tag of all data that an answer about the job contains. The dump has every field, so no write of any command
-- is missed; the field `state_version` changes with the history.
local function tag_of(id, dump)
  local fields = redis.call('HMGET', job_key(id), 'state', 'pool')
  local position = fields[1] == 'queued' and queue_position(id, fields[2])
  return table.concat({ redis.sha1hex(dump), position or '' }, '.')
end

local reply = { 'ok' }
for i, id in ipairs(call.ids) do
  local dump = redis.call('DUMP', job_key(id))
  if not dump then
    reply[#reply + 1] = {}
  else
    local tag = tag_of(id, dump)
    reply[#reply + 1] = tag == call.known[i] and { tag } or { tag, unpack(job_reply(id)) }
  end
end
return reply
