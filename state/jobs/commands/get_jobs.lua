-- Reads jobs, each consistent in itself. What the caller has already is not sent again.
--
-- call: ids [job id], known [tag that came with the job when it was read last, '' for none]
-- Returns: ok, {}…                      an unknown id
--              {tag}                    nothing has changed since
--              {tag, record, history}   in the order of ids
--- @include job

-- Says everything that an answer about the job is made of. The dump has every field, so no write of any command can be missed; with
-- the history the field `state_version` changes.
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
