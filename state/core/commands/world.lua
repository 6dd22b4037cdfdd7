-- The world of a job, and the worlds of a worker. Needs job.lua.
--
--   <prefix>:job:<id>:world       hash  id, execution, plan (JSON, with the token), members (JSON)
--   <prefix>:worker:<id>:worlds   set   jobs whose world has the worker as a member; also the channel that announces
--                                       changes

-- Expiry after a member's last read, which removes the keys of killed workers.
local WORLD_TTL_MS = 3600000

local function world_key(id)
  return job_key(id) .. ':world'
end

local function member_key(worker)
  return prefix .. ':worker:' .. worker .. ':worlds'
end

local function forget_world(id)
  local members = redis.call('HGET', world_key(id), 'members')
  if members then
    for _, worker in ipairs(cjson.decode(members)) do
      redis.call('SREM', member_key(worker), id)
    end
  end
  redis.call('DEL', world_key(id))
end
