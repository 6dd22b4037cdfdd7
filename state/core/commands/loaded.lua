-- Loads the job of the call as `job`, or refuses the call when the job does not exist or has another version. Needs job.lua.

local job = load_job(call.job_id)
if not job then
  return failure('job_not_found', 'there is no job ' .. call.job_id)
end
local changed = version_error(job)
if changed then
  return changed
end
