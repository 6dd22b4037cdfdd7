-- Stops new work on workers and reserves slots on other ones for the jobs that run there, if the pool has not changed
-- since these were chosen. The jobs move at their next step boundary; a job that has ended meanwhile is left out.
--
-- call: pool, version, worker_ids [text], moves [{job_id, placements (JSON)}]
-- Returns: ok, '1'     done
--          ok, '0'     the pool has changed

if (redis.call('GET', prefix .. ':pool:' .. call.pool .. ':version') or '0') ~= call.version then
  return { 'ok', '0' }
end
for _, id in ipairs(call.worker_ids) do
  -- A worker that is gone must not get a record of this field alone.
  if redis.call('EXISTS', prefix .. ':worker:' .. id) == 1 then
    redis.call('HSET', prefix .. ':worker:' .. id, 'retiring', '1')
  end
end
for _, move in ipairs(call.moves) do
  local job = load_job(move.job_id)
  if job and job.worker ~= '' then
    redis.call('HSET', job_key(move.job_id), 'move', move.placements)
    redis.call('PUBLISH', job_key(move.job_id) .. ':control', 'move')
  end
end
change_pool(call.pool)
return { 'ok', '1' }
