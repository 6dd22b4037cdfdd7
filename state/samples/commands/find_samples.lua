-- Tells how far requests for samples are.
--
-- call: ids
-- Returns: ok, 'waiting' | 'taken' | 'gone'…     in the order of the ids
--- @flags no-writes

local reply = { 'ok' }
for _, id in ipairs(call.ids) do
  local worker = redis.call('HGET', sample_key(id), 'worker')
  reply[#reply + 1] = not worker and 'gone' or (worker == '' and 'waiting' or 'taken')
end
return reply
