/**
 * The job store port: everything that api and worker share. The queue (BullMQ) only states that attempt k of job j is due; the object
 * store holds the bytes.
 *
 * Atomic: each method that writes is one command or transaction, so a crash leaves it done or not done. Creation writes the record, the
 * idempotency entry and the outbox entry together. Stream sequence numbers are assigned in the same command as the entry: per job they
 * count 1, 2, 3 … without gaps, over events, metrics and log lines together.
 *
 * Fenced: every write of a worker carries the execution that `claimAttempt` returned. As soon as another claim, a release or a final
 * state ends it, the write is refused with `stale_epoch` and changes nothing.
 *
 * Final: a final state is set by `finishJob` (and through it `requestCancel` of a job that no worker holds) and by the end of the epoch
 * of a job that is cancelling. Nothing changes the state afterwards, except `retryJob` of a failed job.
 *
 * Every method rejects with a `ZerofleetError`; `job_store_unavailable` when Redis cannot be reached in time. Writes are safe to repeat
 * after that error unless stated otherwise.
 */

import type { ApiKeys } from './access/api-keys-port.js';
import type { AuditLog } from './access/audit-port.js';
import type { Principals } from './access/principals-port.js';
import type { Projects } from './access/projects-port.js';
import type { Sessions } from './access/sessions-port.js';
import type { Shares } from './access/shares-port.js';
import type { Users } from './access/users-port.js';
import type { CheckpointEdits } from './edits/edits-port.js';
import type { Forwards } from './integrations/forwards-port.js';
import type { JobAttempts } from './jobs/attempts-port.js';
import type { JobChanges } from './jobs/changes-port.js';
import type { JobExecution } from './jobs/execution-port.js';
import type { CheckpointHolds } from './jobs/holds-port.js';
import type { JobRequests } from './jobs/requests-port.js';
import type { JobRestore } from './jobs/restore.js';
import type { WaitLimits } from './jobs/wait-limits.js';
import type { PoolSlots } from './pools/pools-port.js';
import type { Scaling } from './pools/scaling-port.js';
import type { Scheduling } from './pools/scheduling-port.js';
import type { WorldRendezvous } from './pools/worlds-port.js';
import type { DatasetRecords, ModelRecords } from './records/records-port.js';
import type { SweepGuard } from './records/sweep-port.js';
import type { UploadSpace } from './records/uploads-port.js';
import type { RequestRepeats } from './repeats/repeats-port.js';
import type { SampleRequests } from './samples/samples-port.js';
import type { JobStreams } from './streams/streams-port.js';
import type { Webhooks } from './webhooks/webhooks-port.js';

/** The whole port; `openJobStore` (job-store.ts) implements it on Redis. */
export interface JobStorePort
  extends JobRequests,
    JobChanges,
    JobAttempts,
    JobExecution,
    JobStreams,
    DatasetRecords,
    UploadSpace,
    ModelRecords,
    PoolSlots,
    WorldRendezvous,
    ApiKeys,
    Principals,
    Sessions,
    Shares,
    Users,
    AuditLog,
    Projects,
    JobRestore,
    CheckpointHolds,
    CheckpointEdits,
    SampleRequests,
    RequestRepeats,
    Scaling,
    Scheduling,
    SweepGuard,
    WaitLimits,
    Forwards,
    Webhooks {
  /** Returns Redis' clock, Unix time in ms, which all programs share. */
  now(): Promise<number>;
  /** Checks that Redis answers and accepts writes; used by readiness checks. */
  check(): Promise<void>;
  /** Closes the connections. Idempotent. */
  close(): Promise<void>;
}
