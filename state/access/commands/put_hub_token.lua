-- Replaces or deletes the project's token of the Hugging Face Hub.
--
-- call: project, fields {token, set_at}: empty to delete it
-- Returns: ok

local key = index_key(call.project, 'hub-token')
redis.call('DEL', key)
for name, value in pairs(call.fields) do
  redis.call('HSET', key, name, value)
end
return { 'ok' }
