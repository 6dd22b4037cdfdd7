-- Shared by all commands: how a call arrives, where a job lies, who may write to it.
--
-- A command gets one key and one argument. KEYS[1] is the prefix of every key of the store (it carries the
-- braces, so the whole store is one hash slot and a command may touch any of its keys). ARGV[1] is a JSON object,
-- `call`, with named fields. A command answers {'ok', ...} or {'error', code, message}; codes are those of
-- contracts/errors.ts.
--
--   <prefix>:job:<id>                  hash    the record (fields: state/jobs/record.ts)
--   <prefix>:job:<id>:history          list    JSON {state, reason, at}, oldest first; bounded
--   <prefix>:job:<id>:events, :metrics, :logs  stream  entry id <seq>-<stamp>, one counter for all
--   <prefix>:job:<id>:attempts         list    JSON of each epoch, oldest first (include/attempt.lua)
--   <prefix>:job:<id>:checkpoints      hash    checkpoint id -> JSON;  :checkpoint-places  zset by step
--   <prefix>:checkpoint-jobs           hash    checkpoint id -> job id;  <index>:checkpoints  zset of checkpoint ids, by id
--   <prefix>:removed-checkpoints       zset    checkpoint id and job id of those that were removed, by checkpoint id; bounded
--   <prefix>:checkpoint:<id>:holds     zset    who reads the checkpoint -> time until which it must stay (ms, server clock)
--   <index>:jobs, :jobs:state:<state>, and :jobs:<each of the field indexes>       zset of job ids, by id (that is by time)
--   <prefix>:idempotency:<hash>        hash    body_hash, job_id, reply; expires
--   <prefix>:request:<hash>            hash    body_hash, token, until | reply: other requests with an idempotency key; expires
--   <prefix>:dataset:<id>              string  JSON;  :jobs  set of unfinished jobs that name it
--   <prefix>:upload:<id>               string  id of the dataset that an upload became; expires
--   <index>:datasets, :datasets:name:<name>    zset of dataset ids, by id
--   <index>:copies                     hash    format, size, ETag and URI of an object -> id of the dataset that was copied from it;
--                                              'model', version and URI of a folder -> id of the model
--   <prefix>:model:<id>, <index>:models  as for datasets
--   <prefix>:projects                  set     of the names of projects that have or had records, but for 'default'
--   <prefix>:api-key:<hash>            hash    the key whose secret has this SHA-256 (fields: state/access/api-keys.ts); after a
--                                              rotation there is one for each of its secrets, the older one expires
--   <prefix>:api-keys                  hash    key id -> hash of its newest secret;  <index>:api-key-ids  zset of key ids, by id, as :api-key-ids:name:<name>
--   <index>:quota, :use, :stored, :usage:<day>     what the project may use, uses and has used (use.lua)
--   <index>:audit-log                  stream  entry (JSON), the oldest are dropped
--   <prefix>:deleted-jobs              hash    deleted job id -> JSON {artifacts, project}, until its objects are removed
--   <prefix>:deleted-checkpoints       hash    deleted checkpoint id -> JSON {job_id, prefix, project}, until its objects are removed
--   <prefix>:leases                    zset    job id -> time at which its lease runs out (ms, server clock)
--   <prefix>:wait-limits               zset    waiting job id -> time until which it may wait (ms, server clock)
--   <prefix>:restore                   string  there while lost records are put back; expires
--   <prefix>:sweep-turn                string  there until the next server may sweep the object store; expires
--   <prefix>:worker:<id>               hash    record (JSON), pool, slots, draining, seen_at (ms), retiring ('1': its machine is to be ended)
--   <prefix>:drained                   zset    machine id -> when it said that it has handed everything back (ms), for a day
--   <prefix>:office:<name>             hash    holder, until (ms, server clock), memory: see lead.lua
--   <prefix>:pools                     set     of the names of pools in which something is, or has just been
--   <prefix>:pool:<pool>:workers       zset    worker id -> time until which it counts as alive (ms)
--   <prefix>:pool:<pool>:holders       set     of jobs that hold slots (field `places`): by the lease of `worker`, or, until that worker has
--                                              claimed them, by the allocation to `granted_to`
--   <prefix>:pool:<pool>:waiting       zset    of jobs that wait for slots, about in the order of their turns (state.lua)
--   <prefix>:pool:<pool>:delayed       zset    of jobs that do not wait for slots yet -> when they begin to (ms, server clock)
--   <prefix>:pool:<pool>:waiting-jobs  hash    id of each of both -> what the scheduler has to know of it, JSON (state.lua)
--   <prefix>:pool:<pool>:version       string  stamp of the newest change of workers, demands or allocations: a decision is for one version
--   <prefix>:pool:<pool>:served        zset    project and group -> when a job of that project last got slots there (ms), for a day
--   <prefix>:gone-workers              set     of workers whose queue has to be removed
--   <prefix>:outbox                    stream  queue entries that the relay has to deliver
--   <prefix>:project:<project>:webhooks        zset of webhook ids, by id
--   <prefix>:webhook:<id>              hash    document (JSON), project, secrets (JSON), failing_since (while its messages are not taken)
--   <prefix>:webhook:<id>:deliveries   zset    of delivery ids, by id (that is by time); the log is bounded
--   <prefix>:webhook:<id>:pending      zset    entries in the queue of its messages that are under way, by id of the message
--   <prefix>:delivery:<id>             hash    document (JSON), state, round, next_attempt_at;  :attempts  list of JSON
--   <prefix>:webhook-outbox            stream  events that webhooks have to be told of, messages to send again
-- <index> is <prefix>:project:<project>, and just <prefix> for 'default': so records of versions without projects are its own.
-- Channels: <prefix>:job:<id>:control (the state or the wanted ranks have changed), <prefix>:job:<id>:wake (the stream has grown),
-- <prefix>:api-keys:changed (an API key was made, changed or revoked), <prefix>:pools:changed (the scheduler of the pool that it names has
-- to decide anew).

local prefix = KEYS[1]
local call = cjson.decode(ARGV[1])

local function job_key(id)
  return prefix .. ':job:' .. id
end

local function index_key(project, name)
  if project == 'default' then
    return prefix .. ':' .. name
  end
  return prefix .. ':project:' .. project .. ':' .. name
end

local function know_project(project)
  if project ~= 'default' then
    redis.call('SADD', prefix .. ':projects', project)
  end
end

local function failure(code, message)
  return { 'error', code, message }
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A number that the server gives out once, and greater than `last` (text or nil): its clock's time in microseconds. A server that took
-- over without the newest writes counts on from an older number, and would number other things with a count as those that were lost.
local function next_stamp(last)
  local time = redis.call('TIME')
  return string.format('%d', math.max(time[1] * 1000000 + time[2], tonumber(last or 0) + 1))
end

-- The record as a table of strings; nil when there is none.
local function load_job(id)
  local flat = redis.call('HGETALL', job_key(id))
  if #flat == 0 then
    return nil
  end
  local job = {}
  for i = 1, #flat, 2 do
    job[flat[i]] = flat[i + 1]
  end
  return job
end

-- The place of a job among those that wait for slots, from 1 on; nil for one that does not.
local function queue_position(id, pool)
  local rank = redis.call('ZRANK', prefix .. ':pool:' .. pool .. ':waiting', id)
  return rank and rank + 1
end

-- Record and history, as record.ts reads them, with the place in the queue as one more field.
local function job_reply(id)
  local flat = redis.call('HGETALL', job_key(id))
  if #flat > 0 then
    local fields = redis.call('HMGET', job_key(id), 'state', 'pool')
    local position = fields[1] == 'queued' and queue_position(id, fields[2])
    flat[#flat + 1] = 'queue_position'
    flat[#flat + 1] = position and tostring(position) or ''
  end
  return { flat, redis.call('LRANGE', job_key(id) .. ':history', 0, -1) }
end

-- nil when the holder of `execution` (contracts/execution.ts) may write to the job, else the error.
local function fence(job, execution)
  if not job then
    return failure('job_not_found', 'there is no job ' .. call.job_id)
  end
  if job.final == '1' then
    return failure('job_final', 'the job has ended: ' .. job.state)
  end
  if job.worker == '' or job.execution ~= execution then
    return failure('stale_epoch', 'execution ' .. execution .. ' of the job has ended, its last one is ' .. job.execution)
  end
  return nil
end

-- An error when the job is at none of the versions that the caller wants it to be at (`if_versions`, may be absent), else nil.
local function version_error(job)
  if not call.if_versions then
    return nil
  end
  for _, version in ipairs(call.if_versions) do
    if version == tonumber(job.state_version) then
      return nil
    end
  end
  return failure('version_mismatch', 'the job is at state_version ' .. job.state_version)
end

-- Numbers a change of the job's state, or of what is asked of it.
local function change_version(id)
  local version = redis.call('HGET', job_key(id), 'state_version')
  redis.call('HSET', job_key(id), 'state_version', next_stamp(version))
end

local function wake(id, seq)
  redis.call('PUBLISH', job_key(id) .. ':wake', seq)
end

-- Events that no server has taken to the webhooks yet; without any server the newest so many are kept, about.
local WEBHOOK_OUTBOX_KEPT = 100000

-- Remembers an event for the webhooks of the job's project, if there are any, in the step that makes the event.
local function tell_webhooks(id, seq, stamp, type, at, data)
  local job = redis.call('HMGET', job_key(id), 'project', 'notify', 'stream')
  local project, notify = job[1], job[2]
  if redis.call('EXISTS', prefix .. ':project:' .. project .. ':webhooks') == 1 then
    local event = { 'job_id', id, 'stream', job[3], 'seq', seq, 'stamp', stamp, 'type', type, 'at', at, 'data', data }
    local key = prefix .. ':webhook-outbox'
    redis.call('XADD', key, 'MAXLEN', '~', WEBHOOK_OUTBOX_KEPT, '*', 'project', project, 'notify', notify, unpack(event))
  end
end

-- Appends an entry to the job's stream; the newest `keep` of its kind are kept, about. Returns its number and its stamp, which a number
-- that is given a second time does not have.
local function append_entry(id, kind, keep, ...)
  local key = job_key(id)
  local last = redis.call('HMGET', key, 'seq', 'seq_stamp')
  local seq, stamp = tonumber(last[1]) + 1, next_stamp(last[2])
  redis.call('HSET', key, 'seq', seq, 'seq_stamp', stamp)
  redis.call('XADD', key .. ':' .. kind .. 's', 'MAXLEN', '~', keep, seq .. '-' .. stamp, ...)
  return seq, stamp
end

-- Events of a job; the newest so many are kept, about.
local EVENTS_KEPT = 10000

local function append_event(id, type, at, data)
  local seq, stamp = append_entry(id, 'event', EVENTS_KEPT, 'type', type, 'at', at, 'data', data)
  tell_webhooks(id, seq, stamp, type, at, data)
  wake(id, seq)
  return seq
end
