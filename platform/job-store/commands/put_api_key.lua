-- Accepts an API key from now on; the same secret again keeps its id and time and replaces the rest.
--
-- call: hash (SHA-256 of the secret, hex), key_id, name, scopes (JSON), project, at
-- Returns: ok, key_id, created_at
--- @include job

local key = prefix .. ':api-key:' .. call.hash
redis.call('HSETNX', key, 'id', call.key_id)
redis.call('HSETNX', key, 'created_at', call.at)
redis.call('HSET', key, 'name', call.name, 'scopes', call.scopes, 'project', call.project)
local known = redis.call('HMGET', key, 'id', 'created_at')
redis.call('HSET', prefix .. ':api-keys', known[1], call.hash)
return { 'ok', known[1], known[2] }
