import { ulid } from 'ulid';
import type { Execution } from '../../contracts/execution.js';
import type { Checkpoint } from '../../contracts/index.js';
import type { JobStore } from '../job-store.js';

const LEASE_MS = 60_000;
const PLAN = {
  world_id: 'w',
  token: 'token',
  leader: { worker_id: 'a', address: '127.0.0.1', port: 1 },
  members: [],
};

/** Returns every write of a worker, to be tried with an execution that has ended. */
export function workerWrites(
  store: JobStore,
  id: string,
  execution: Execution,
): Record<string, () => Promise<unknown>> {
  return {
    renewLease: () => store.renewLease(id, execution, LEASE_MS),
    transition: () => store.transition(id, execution, 'running'),
    finishJob: () => store.finishJob(id, execution, 'succeeded'),
    releaseAttempt: () => store.releaseAttempt(id, execution, { to: 'queued' }),
    report: () => store.report(id, execution, [], null),
    appendLogs: () => store.appendLogs(id, execution, []),
    appendEvent: () => store.appendEvent(id, execution, { type: 'rank.lost' }),
    commitCheckpoint: () => store.commitCheckpoint(id, execution, testCheckpoint(id, 5)),
    rejectCheckpoint: () => store.rejectCheckpoint(id, execution, 'ckpt_x'),
    removeCheckpoint: () => store.removeCheckpoint(id, execution, 'ckpt_x'),
    sealWorld: () => store.sealWorld(id, execution, PLAN),
  };
}

/** Returns the record of a checkpoint without files. */
export function testCheckpoint(jobId: string, step: number): Checkpoint {
  return {
    id: `ckpt_${ulid()}`,
    job_id: jobId,
    step,
    world_size: 2,
    state_digest: String(step).padStart(32, '0'),
    bytes: 100,
    committed_at: new Date().toISOString(),
    pinned: false,
    damaged: false,
    prefix: `jobs/${jobId}/checkpoints/${step}`,
  };
}
