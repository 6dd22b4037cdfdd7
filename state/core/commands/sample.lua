-- Requests for samples, and the messages of workers to the callers. A request waits for a worker of its pool, or a
-- worker answers it. Needs job.lua.
--
-- Nothing of a pool without workers stays: all keys expire.

-- Retention of a request that nobody renews.
local SAMPLE_KEPT_MS = 600000
-- A caller reads its messages again before this time, or it is gone.
local CALLER_KEPT_MS = 60000

local function sample_key(id)
  return prefix .. ':sample:' .. id
end

local function samples_key(pool)
  return prefix .. ':pool:' .. pool .. ':samples'
end

local function taken_key(pool)
  return prefix .. ':pool:' .. pool .. ':samples-taken'
end

local function caller_key(caller)
  return prefix .. ':sample-caller:' .. caller
end

local function keep_sample(id, pool)
  redis.call('PEXPIRE', sample_key(id), SAMPLE_KEPT_MS)
  redis.call('PEXPIRE', samples_key(pool), SAMPLE_KEPT_MS)
  redis.call('PEXPIRE', taken_key(pool), SAMPLE_KEPT_MS)
end

-- Numbers of requests: of all, by project, and by queue (project and model).
local function new_usage(max)
  return { max = max, used = 0, by_project = {}, by_queue = {} }
end

local function count_request(usage, queue, count)
  local project = string.match(queue, '^%S+')
  usage.used = usage.used + count
  usage.by_project[project] = (usage.by_project[project] or 0) + count
  usage.by_queue[queue] = (usage.by_queue[queue] or 0) + count
end

-- A project may have as many requests as remain free, and a model half as many. So the next project and the next model
-- find room, however long the answers of the others are.
local function has_room(usage, queue)
  local free = usage.max - usage.used
  local project = string.match(queue, '^%S+')
  return (usage.by_project[project] or 0) < free and (usage.by_queue[queue] or 0) < free / 2
end

local function forget_sample(id)
  local known = redis.call('HMGET', sample_key(id), 'pool', 'queue')
  if known[1] then
    redis.call('ZREM', samples_key(known[1]), known[2] .. ' ' .. id)
    redis.call('ZREM', taken_key(known[1]), id)
    redis.call('DEL', sample_key(id))
  end
end

-- Returns a request that a worker has taken to those that wait, where it was in its queue.
local function return_sample(id)
  local known = redis.call('HMGET', sample_key(id), 'pool', 'queue', 'since')
  if known[1] then
    redis.call('HSET', sample_key(id), 'worker', '')
    redis.call('ZREM', taken_key(known[1]), id)
    redis.call('ZADD', samples_key(known[1]), known[3], known[2] .. ' ' .. id)
    keep_sample(id, known[1])
    redis.call('PUBLISH', samples_key(known[1]), id)
  end
end

-- Adds a message for the caller of a request. Returns false when the caller is gone.
local function tell_caller(id, message)
  local caller = redis.call('HGET', sample_key(id), 'caller')
  if not caller or redis.call('EXISTS', caller_key(caller)) == 0 then
    return false
  end
  local messages = caller_key(caller) .. ':messages'
  redis.call('XADD', messages, '*', 'id', id, 'message', message)
  redis.call('PEXPIRE', messages, CALLER_KEPT_MS)
  redis.call('HINCRBY', caller_key(caller), 'bytes', #message)
  redis.call('PUBLISH', caller_key(caller), id)
  return true
end
