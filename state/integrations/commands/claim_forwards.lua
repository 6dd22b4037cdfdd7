-- Claims due integrations, the longest waiting first. If a job has written nothing since its last forwarding, its
-- integration is postponed without a claim, until its `beat` if it has one.
--
-- call: limit, look (integrations to look at), token, lease_ms, idle_ms
-- Returns: ok, {job_id, index, seq, state, interrupted} …
--          seq: the last number of the job's stream; state: JSON, '' at the beginning;
--          interrupted: '1' if the last claim ended without `save_forward`
--- @flags allow-oom

local due = prefix .. ':forwards'
local now = now_ms()
local reply = { 'ok' }
for _, member in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', string.format('%d', now), 'LIMIT', 0, call.look)) do
  local id, index = string.match(member, '^(.*):(%d+)$')
  local key = forward_key(id, index)
  local seq = redis.call('HGET', job_key(id), 'seq')
  local known = redis.call('HMGET', key, 'seq', 'token', 'state', 'beat')
  if not seq then
    redis.call('ZREM', due, member)
  elseif known[1] == seq and now < (tonumber(known[4]) or math.huge) then
    redis.call('ZADD', due, string.format('%d', now + call.idle_ms), member)
  elseif #reply <= call.limit then
    redis.call('ZADD', due, string.format('%d', now + call.lease_ms), member)
    redis.call('HSET', key, 'token', call.token)
    local interrupted = known[2] and known[2] ~= '' and '1' or '0'
    reply[#reply + 1] = { id, index, seq, known[3] or '', interrupted }
  end
end
return reply
