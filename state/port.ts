/**
 * The job store port: everything that api and worker agree on lives here and nowhere else. The queue (BullMQ)
 * only says "attempt k of job j is due"; objects hold the bytes.
 *
 * Atomic: each method that writes is one script or transaction, so a crash leaves it done or not done. Creation writes
 * the record, the idempotency entry and the outbox entry together. Stream sequence numbers are given inside
 * the same script as the entry: per job they count 1, 2, 3 … without gaps, over events, metrics and log lines together.
 *
 * Fenced: every write of a worker carries the execution that `claimAttempt` gave it. As soon as another claim, a
 * release or a final state ends it, the write is refused with `stale_epoch` and changes nothing.
 *
 * Final: `finishJob` (and through it `requestCancel` of a job that nobody runs) sets a final state, and the end of an epoch of a job
 * that is cancelling;
 * nothing changes the state of a job afterwards, but for `retryJob` of one that failed.
 *
 * Every method rejects with a `ZerofleetError`; `job_store_unavailable` when Redis cannot be reached in time.
 * Writes are safe to repeat after that error unless said otherwise.
 */

import type { ApiKeys } from './access/api-keys-port.js';
import type { AuditLog } from './access/audit-port.js';
import type { Projects } from './access/projects-port.js';
import type { JobAttempts } from './jobs/attempts-port.js';
import type { JobChanges } from './jobs/changes-port.js';
import type { JobExecution } from './jobs/execution-port.js';
import type { CheckpointHolds } from './jobs/holds-port.js';
import type { JobRequests } from './jobs/requests-port.js';
import type { JobRestore } from './jobs/restore.js';
import type { WaitLimits } from './jobs/wait-limits.js';
import type { PoolPlaces } from './pools/pools-port.js';
import type { Scaling } from './pools/scaling-port.js';
import type { Scheduling } from './pools/scheduling-port.js';
import type { WorldRendezvous } from './pools/worlds-port.js';
import type { DatasetRecords, ModelRecords } from './records/records-port.js';
import type { SweepGuard } from './records/sweep-port.js';
import type { UploadSpace } from './records/uploads-port.js';
import type { RequestRepeats } from './repeats/repeats-port.js';
import type { JobStreams } from './streams/streams-port.js';
import type { Webhooks } from './webhooks/webhooks-port.js';

/** The whole port; `openJobStore` (job-store.ts) gives one on Redis. */
export interface JobStorePort
  extends JobRequests,
    JobChanges,
    JobAttempts,
    JobExecution,
    JobStreams,
    DatasetRecords,
    UploadSpace,
    ModelRecords,
    PoolPlaces,
    WorldRendezvous,
    ApiKeys,
    AuditLog,
    Projects,
    JobRestore,
    CheckpointHolds,
    RequestRepeats,
    Scaling,
    Scheduling,
    SweepGuard,
    WaitLimits,
    Webhooks {
  /** Unix time in ms by Redis' clock, which is the same for all programs. */
  now(): Promise<number>;
  /** Proves that Redis answers and accepts writes; used by readiness checks. */
  check(): Promise<void>;
  /** Frees connections. Idempotent. */
  close(): Promise<void>;
}
