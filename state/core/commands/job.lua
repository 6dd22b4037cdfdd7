-- Shared by all commands: arguments and replies, keys, fencing.
--
-- A command gets one key and one argument (core/library.ts). The key, `prefix`, begins every key of the store. It
-- contains the braces, so the whole store is one hash slot, and a command may touch any of its keys. The argument,
-- `call`, is a JSON object with named fields. A command returns {'ok', ...} or {'error', code, message}; codes are
-- those of contracts/errors.ts.
--
--   <prefix>:job:<id>                  hash    the record (fields: state/jobs/record.ts)
--   <prefix>:job:<id>:history          list    JSON {state, reason, at}, oldest first; bounded
--   <prefix>:job:<id>:events, :metrics, :logs  stream  entry id <seq>-<stamp>, one counter for all
--   <prefix>:job:<id>:metric-blocks    list    '<first seq> <first step> <last step> <last seq> <line bytes>' of
--                                              metrics of successive steps (report.lua)
--   <prefix>:job:<id>:metric-extremes  list    for each block JSON: name of a value -> its extremes and the seqs of
--                                              their metrics
--   <prefix>:job:<id>:calls            hash    counters of a session (state/calls/calls.ts)
--   <prefix>:job:<id>:attempts         list    JSON of each epoch, oldest first (attempt.lua)
--   <prefix>:job:<id>:checkpoints      hash    checkpoint id -> JSON;  :checkpoint-order  zset by step
--   <prefix>:checkpoint-jobs           hash    checkpoint id -> job id;  <index>:checkpoints  zset of checkpoint ids,
--                                                                                             by id
--   <prefix>:removed-checkpoints       zset    checkpoint id and job id of removed checkpoints, by checkpoint id;
--                                              bounded
--   <prefix>:checkpoint:<id>:holds     zset    holder -> end of its hold (ms, server clock)
--   <index>:jobs, :jobs:state:<state>, and :jobs:<each of the field indexes>       zset of job ids, by id (that is, by
--                                                                                  time)
--   <prefix>:idempotency:<hash>        hash    body_hash, job_id, reply; expires
--   <prefix>:request:<hash>            hash    body_hash, token, until | reply: other requests with an idempotency key;
--                                              expires
--   <prefix>:dataset:<id>              string  JSON;  :jobs  set of unfinished jobs that name it
--   <prefix>:upload:<id>               string  id of the dataset that an upload became; expires
--   <index>:datasets, :datasets:name:<name>    zset of dataset ids, by id
--   <index>:copies                     hash    format, size, ETag and URI of an object -> id of the dataset that was
--                                              copied from it; 'model', version and URI of a folder -> id of the model
--   <prefix>:model:<id>, <index>:models  as for datasets
--   <prefix>:sweep:<id>, <index>:sweeps  as for datasets
--   <prefix>:active-sweeps              hash    id of each sweep with unfinished work -> its project
--   <prefix>:projects                  set     names of projects that have or had records, except 'default'
--   <prefix>:api-key:<hash>            hash    the key whose secret has this SHA-256 (fields:
--                                              state/access/api-keys.ts); after a rotation one per secret, the older
--                                              one expires
--   <prefix>:api-keys                  hash    key id -> hash of its newest secret
--   <index>:api-key-ids, :api-key-ids:name:<name>  zset of key ids, by id
--   <index>:user-ids                   zset of ids of users, by the end of their sign-in (Unix time in ms)
--   <prefix>:principal:<id>            hash    a share (fields: state/access/shares.ts) or a user (users.ts); expires
--   <prefix>:share:<hash>              string  id of the share whose token has this SHA-256; expires
--   <prefix>:job:<id>:shares           zset    share id -> its end (ms, server clock)
--   <prefix>:sign-in-code:<hash>       string  id of the principal; expires
--   <prefix>:session:<hash>            hash    principal_id, expires_at (ms, server clock), secure: a browser session;
--                                              expires
--   <prefix>:sign-in-codes:<id>, :sessions:<id>  zset  hashes of the principal's codes or sessions, by their ends;
--                                                      bounded
--   <index>:hub-token                  hash    token, set_at: of the Hugging Face Hub
--   <index>:quota, :used, :stored, :usage:<day>     what the project may use, uses and has used (use.lua)
--   <index>:audit-log                  stream  entry (JSON); the oldest are dropped
--   <prefix>:deleted-jobs              hash    deleted job id -> JSON {artifacts, project}, until its objects are
--                                              removed
--   <prefix>:deleted-checkpoints       hash    deleted checkpoint id -> JSON {job_id, prefix, project}, until its
--                                              objects are removed
--   <prefix>:leases                    zset    job id -> end of its lease (ms, server clock)
--   <prefix>:wait-deadlines            zset    waiting job id -> deadline of its wait (ms, server clock)
--   <prefix>:restore                   string  exists while lost records are restored; expires
--   <prefix>:collection-lock           string  exists until the next server may collect garbage in the object store;
--                                              expires
--   <prefix>:worker:<id>               hash    record (JSON), pool, slots, draining, seen_at (ms),
--                                              retiring ('1': its machine will be terminated)
--   <prefix>:drained                   zset    machine id -> time at which it reported that it is drained (ms), for a
--                                              day
--   <prefix>:leader-lease:<name>       hash    leader lease: holder, lease_until (ms, server clock), state of the
--                                              leader: see acquire_leader_lease.lua
--   <prefix>:pools                     set     names of pools that have, or had until recently, a worker or a job
--   <prefix>:pool:<pool>:workers       zset    worker id -> time until which it counts as alive (ms)
--   <prefix>:pool:<pool>:holders       set     jobs that hold slots (field `placements`): by the lease of `worker`, or,
--                                              until that worker has claimed them, by the allocation to `allocated_to`
--   <prefix>:pool:<pool>:waiting       zset    jobs that wait for slots, approximately in queue order (state.lua)
--   <prefix>:pool:<pool>:delayed       zset    delayed jobs -> time at which they begin to wait for slots (ms, server
--                                              clock)
--   <prefix>:pool:<pool>:waiting-jobs  hash    id of each waiting or delayed job -> its data for the scheduler, JSON
--                                              (state.lua)
--   <prefix>:pool:<pool>:version       string  stamp of the newest change of workers, demands or allocations: a
--                                              decision is for one version
--   <prefix>:pool:<pool>:last-allocations  zset  project and group -> time of the project's last allocation there (ms),
--                                                for a day
--   <prefix>:pool:<pool>:samples       zset    project, model and id of each request for a sample that waits for a
--                                              worker -> its time (ms); expires
--   <prefix>:pool:<pool>:samples-taken zset    id of each request that a worker answers -> end of the worker's hold
--                                              (ms); expires
--   <prefix>:sample:<id>               hash    caller, pool, queue (project and model), payload (JSON), since (ms),
--                                              until (ms: no worker takes it later; '' once one has), worker ('' for
--                                              none), lost (workers); expires
--   <prefix>:sample-caller:<caller>    hash    bytes of unread messages; expires with the caller;  :messages  stream of
--                                                                                                             id,
--                                                                                                             message
--                                                                                                             (JSON)
--   <prefix>:removed-workers           set     workers whose queue must be removed
--   <prefix>:outbox                    stream  queue entries for the relay to deliver
--   <prefix>:project:<project>:webhooks        zset of webhook ids, by id
--   <prefix>:forwards                  zset    job id and index of an integration, or of answers to prompts, that has
--                                              not ended, <id>:<index> -> time at which it is due (ms, server clock)
--   <prefix>:job:<id>:forward:<index>  hash    state (JSON), seq (of the job's stream, when all of it was forwarded),
--                                              token (of the server that forwards; empty for none)
--   <prefix>:webhook:<id>              hash    document (JSON), project, secrets (JSON),
--                                              failing_since (while its receiver accepts no message)
--   <prefix>:webhook:<id>:deliveries   zset    delivery ids, by id (that is, by time); the log is bounded
--   <prefix>:webhook:<id>:pending      zset    pending entries in the queue of its messages, by id of the message
--   <prefix>:delivery:<id>             hash    document (JSON), state, round, next_attempt_at;  :attempts  list of JSON
--   <prefix>:webhook-outbox            stream  events for webhooks, messages to send again
-- <index> is <prefix>:project:<project>, and <prefix> for 'default'.
-- Channels:
--   <prefix>:job:<id>:control          the state or the requested ranks have changed
--   <prefix>:job:<id>:wake             the stream has grown
--   <prefix>:job:<id>:calls            a counter of calls has changed
--   <prefix>:pool:<pool>:samples       a request waits
--   <prefix>:sample-caller:<caller>    there is a message
--   <prefix>:principals:changed        an API key or a share was changed or has ended
--   <prefix>:pools:changed             the scheduler must decide again for the pool that the message names

local prefix, call

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

-- Returns a unique number that is greater than `last` (text or nil): the server's clock in microseconds. After a
-- failover that lost the newest writes a counter would continue from an older value and reuse lost numbers; the clock
-- does not.
local function next_stamp(last)
  local time = redis.call('TIME')
  return string.format('%d', math.max(time[1] * 1000000 + time[2], tonumber(last or 0) + 1))
end

-- Returns the record as a table of strings; nil when it does not exist.
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

-- Returns the position of a job among those that wait for slots, from 1 on; nil for other jobs.
local function queue_position(id, pool)
  local rank = redis.call('ZRANK', prefix .. ':pool:' .. pool .. ':waiting', id)
  return rank and rank + 1
end

-- Returns record and history in the form that record.ts reads, with the queue position as an additional field.
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

-- Returns nil when the holder of `execution` (contracts/execution.ts) may write to the job, else the error.
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

-- Returns an error when the job is at none of the versions that the caller requires (`if_versions`, may be absent),
-- else nil.
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

-- Loads the job of the call; returns nil and an error when the job does not exist or has another version.
local function load_called_job()
  local job = load_job(call.job_id)
  if not job then
    return nil, failure('job_not_found', 'there is no job ' .. call.job_id)
  end
  return job, version_error(job)
end

-- Assigns a new version to the job after a change of its state or of the requests to it.
local function change_version(id)
  local version = redis.call('HGET', job_key(id), 'state_version')
  redis.call('HSET', job_key(id), 'state_version', next_stamp(version))
end

local function wake(id, seq)
  redis.call('PUBLISH', job_key(id) .. ':wake', seq)
end

-- Approximate number of events kept for webhooks while no server consumes them.
local WEBHOOK_OUTBOX_KEPT = 100000

-- Writes an event to the webhook outbox if the job's project has webhooks, in the command that writes the event.
local function tell_webhooks(id, seq, stamp, type, at, data)
  local job = redis.call('HMGET', job_key(id), 'project', 'notify', 'stream')
  local project, notify = job[1], job[2]
  if redis.call('EXISTS', prefix .. ':project:' .. project .. ':webhooks') == 1 then
    local event = { 'job_id', id, 'stream', job[3], 'seq', seq, 'stamp', stamp, 'type', type, 'at', at, 'data', data }
    local key = prefix .. ':webhook-outbox'
    redis.call('XADD', key, 'MAXLEN', '~', WEBHOOK_OUTBOX_KEPT, '*', 'project', project, 'notify', notify, unpack(event))
  end
end

-- Appends an entry to the job's stream; about the newest `keep` of its kind are kept. Returns its number and its stamp;
-- a reused number has another stamp.
local function append_entry(id, kind, keep, ...)
  local key = job_key(id)
  local last = redis.call('HMGET', key, 'seq', 'seq_stamp')
  local seq, stamp = tonumber(last[1]) + 1, next_stamp(last[2])
  redis.call('HSET', key, 'seq', seq, 'seq_stamp', stamp)
  redis.call('XADD', key .. ':' .. kind .. 's', 'MAXLEN', '~', keep, seq .. '-' .. stamp, ...)
  return seq, stamp
end

-- Approximate number of events kept per job.
local EVENTS_KEPT = 10000

local function append_event(id, type, at, data)
  local seq, stamp = append_entry(id, 'event', EVENTS_KEPT, 'type', type, 'at', at, 'data', data)
  tell_webhooks(id, seq, stamp, type, at, data)
  wake(id, seq)
  return seq
end
