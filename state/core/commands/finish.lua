-- The end of a job, and the release of an attempt by its worker. Needs state.lua, checkpoint.lua and their
-- dependencies.

-- Sets the final state of `job` (its record). No other function does, and nothing changes it afterwards. `reason` may
-- be nil, `failure` and `export` are JSON or ''.
local function finish(id, job, state, reason, failure, export, at)
  drop_lease(id, job)
  if state == 'cancelled' and job.over_budget == '1' then
    reason = 'budget_reached'
  end
  if failure ~= '' then
    change_attempt(id, { root_cause = failure })
  end
  end_attempt(id, state, reason, at)
  redis.call('HSET', job_key(id), 'final', '1', 'failure', failure, 'export', export)
  for dataset_id in string.gmatch(job.dataset_ids, '%S+') do
    redis.call('SREM', prefix .. ':dataset:' .. dataset_id .. ':jobs', id)
  end
  let_go_of_source(job)
  for model_id in string.gmatch(job.model_ids, '%S+') do
    redis.call('SREM', prefix .. ':model:' .. model_id .. ':jobs', id)
  end
  set_state(id, job, state, reason, at)
end

-- Ends an attempt. A job that is cancelling gets its final state here because no worker is left to set it.
local function give_back(id, job, to, reason, at, delay_ms)
  if job.state == 'cancelling' then
    finish(id, job, 'cancelled', 'user_request', '', '', at)
  else
    release(id, job, to, reason, at, delay_ms)
  end
end
