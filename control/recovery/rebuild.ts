import { decodeTime } from 'ulid';
import type { Job, JobState, StateChange } from '../../contracts/index.js';
import { tokensPerStep } from '../../job-document/index.js';
import { IDEMPOTENCY_TTL_MS, initialJob, progressOf, type RestoredJob } from '../../state/index.js';
import type { StoredJob } from './stored-job.js';

/**
 * Distance of a rebuilt job's epoch from the highest epoch found. Workers may have started epochs since then
 * without saving; a million of them is impossible, so every worker that still runs is fenced.
 */
export const EPOCH_JUMP = 1_000_000;

/**
 * Rebuilds the record of a job from the object store: its result if it has ended, else its desired state.
 * Events and metrics are not stored there, so its stream restarts.
 * @param now ms since 1970
 */
export function rebuild(stored: StoredJob, now: number): RestoredJob {
  const { spec, checkpoints, desired } = stored;
  const createdAt = new Date(decodeTime(spec.job_id.slice('job_'.length))).toISOString();
  const fresh = initialJob(spec.job_id, spec.spec, createdAt);
  const end = stateOf(stored, new Date(now).toISOString());
  const result = end.state === 'succeeded' || end.state === 'failed' ? stored.result : null;
  const latest = checkpoints.at(-1) ?? null;
  const epoch = stored.epoch + EPOCH_JUMP;
  const job: Job = {
    ...fresh,
    state: end.state,
    reason: end.reason,
    state_history: [...fresh.state_history, end],
    updated_at: end.at,
    epoch,
    requested_ranks: desired?.ranks ?? fresh.requested_ranks,
    progress: result?.metrics ?? progressAt(fresh, latest?.step ?? 0),
    latest_checkpoint: latest && { id: latest.id, step: latest.step, state_digest: latest.state_digest },
    export: result?.export ?? null,
    failure: result?.failure ?? null,
  };
  return { job, checkpoints, idempotency: idempotencyOf(stored, now - Date.parse(createdAt)) };
}

function stateOf({ result, desired, checkpoints, epoch }: StoredJob, now: string): StateChange {
  const change = (state: JobState, reason: string | null, at = now): StateChange => ({ state, reason, at });
  // A worker that lost its lease while failing the job may have left a result that never counted.
  const outlived = result?.state === 'failed' && result.epoch < epoch;
  if (result && !outlived) {
    return change(result.state, result.reason, result.finished_at);
  }
  switch (desired?.desired) {
    case 'cancel':
      return change('cancelled', desired.reason ?? 'user_request', desired.at);
    case 'pause':
      return change('paused', desired.reason ?? 'user_request', desired.at);
    default:
      return change('queued', checkpoints.length > 0 ? 'recovered' : null);
  }
}

function progressAt({ progress, spec }: Job, step: number): Job['progress'] {
  const tokens = step * tokensPerStep(spec.train);
  return progressOf(spec, { ...progress, step, tokens });
}

function idempotencyOf({ spec }: StoredJob, ageMs: number): RestoredJob['idempotency'] {
  const ttlMs = IDEMPOTENCY_TTL_MS - ageMs;
  return spec.idempotency && ttlMs > 0 ? { ...spec.idempotency, ttl_ms: ttlMs } : null;
}
