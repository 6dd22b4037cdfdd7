-- Reads whole jobs, each consistent in itself.
--
-- call: ids [job id]
-- Returns: ok, {record, history}…   in the order of ids; an empty record for an unknown id
--- @include job

local reply = { 'ok' }
for _, id in ipairs(call.ids) do
  reply[#reply + 1] = job_reply(id)
end
return reply
