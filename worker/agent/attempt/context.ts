import {
  type Job,
  type ResolvedJobSpec,
  type TraceContext,
  type TrainableJobSpec,
  ZerofleetError,
} from '../../../contracts/index.js';
import type { ObjectStoreLocation } from '../../../contracts/rank-protocol.js';
import { isTrainable } from '../../../job-document/index.js';
import type { Logger } from '../../../platform/logging/logging.js';
import type { ObjectStore } from '../../../platform/object-store/common/port.js';
import { usableCores } from '../../../platform/process/usable-cores.js';
import type {
  CheckpointEdits,
  CheckpointHolds,
  DatasetRecords,
  EventInput,
  JobAttempts,
  JobChanges,
  JobExecution,
  JobRequests,
  JobStore,
  JobStreams,
  ModelRecords,
  PoolSlots,
  SampleRequests,
  SessionCalls,
  Webhooks,
  WorkerSlots,
  WorldRendezvous,
} from '../../../state/index.js';
import type { ChildProcesses } from '../../shared/child-processes.js';
import { retryTransient } from '../../shared/errors.js';
import type { Timing } from '../../shared/timing.js';
import type { JobSession } from '../credentials/job-session.js';
import type { Sessions } from '../credentials/sessions.js';
import type { GpuPool } from '../gpus/gpu-pool.js';
import type { Lease } from '../lease/lease.js';
import type { LinkServer } from '../link/link-server.js';
import type { AgentMetrics } from '../metrics/agent-metrics.js';
import type { Drain } from '../preemption/drain.js';
import type { ProjectGraders } from '../project-graders.js';
import type { LogReporter } from '../reporting/log-reporter.js';
import type { ProgressReporter } from '../reporting/progress-reporter.js';
import type { Resizer } from './resizer.js';
import type { StopRequests } from './stop-requests.js';

/** Part of the job store that the worker uses. */
export type WorkerStore = JobAttempts &
  JobExecution &
  Pick<JobRequests, 'findCheckpoint' | 'getJob' | 'getTrace' | 'listCheckpoints'> &
  CheckpointHolds &
  CheckpointEdits &
  Pick<JobStreams, 'readSteps'> &
  Pick<JobChanges, 'updateJob'> &
  Pick<PoolSlots, 'adjustPlacements' | 'announceWorker' | 'listWorkers' | 'withdrawWorker'> &
  WorldRendezvous &
  SampleRequests &
  SessionCalls &
  Pick<DatasetRecords, 'getDataset'> &
  Pick<ModelRecords, 'getModel'> &
  Pick<Webhooks, 'webhookTarget'> &
  Pick<JobStore, 'now'>;

/** Dependencies that all attempts of one agent share. */
export interface AgentDeps {
  store: WorkerStore;
  objects: ObjectStore;
  /** Location of the same object store, for child processes. */
  object_store: ObjectStoreLocation;
  /** Source of credentials for child processes; null if they use this agent's. */
  sessions: Sessions | null;
  processes: ChildProcesses;
  graders: ProjectGraders;
  /** Absolute path; prepared data by the digest of its sources. */
  cache_dir: string;
  /** Maximum size of the cache, used and unused entries together. */
  cache_bytes: number;
  /** Maximum number of ranks at a time, at the start of the agent. */
  slots: number;
  /** Numerics fingerprint of its ranks; null if unknown. */
  numerics: string | null;
  /** GPUs of its ranks; null on the CPU. */
  gpus: GpuPool | null;
  /** GPUs that answer, and are no slots; null: its CPU answers. */
  answer_gpus: GpuPool | null;
  links: WorldLinks;
  /** Machine id at its provider; null if unknown. */
  machine: string | null;
  /** Domains of the network that contain the machine, the largest first. */
  topology: string[];
  /** Null: the machine's cores divided by its ranks; a rank on a GPU needs few. */
  threads_per_rank: number | null;
  timing: Timing;
  price_per_rank_hour: number;
  metrics: AgentMetrics;
  drain: Drain;
  log: Logger;
}

/** Context that the parts of one attempt share. */
export interface AttemptContext {
  deps: AgentDeps;
  /** The job when the attempt was claimed, or when the generation began. */
  job: Job;
  /** Trace context of this attempt, in the trace of the request that created the job. */
  trace: TraceContext;
  lease: Lease;
  stops: StopRequests;
  resizer: Resizer;
  reporter: ProgressReporter;
  logs: LogReporter;
  log: Logger;
}

/** The attempt's context with the placement of its ranks. */
export interface PlacedContext extends AttemptContext {
  /** Placement of the ranks; this worker comes first. */
  placements: readonly WorkerSlots[];
  world_size: number;
  /** Credentials of the job's processes on this machine; null: this agent's. */
  session: JobSession | null;
}

/** Job with its number of steps. */
export type TrainableJob = Job & { spec: TrainableJobSpec };

/** @throws ZerofleetError `internal_error` for a job whose number of steps is unknown */
export function withSteps({ spec, ...job }: Job): TrainableJob {
  if (isTrainable(spec)) return { ...job, spec };
  throw new ZerofleetError('internal_error', `the record of ${job.id} has no number of steps`);
}

/** Context that the parts of one generation share. Nothing trains before the number of steps is known. */
export interface GenerationContext extends PlacedContext {
  job: TrainableJob;
}

/** Threads of a process that computes on a GPU, unless it updates a rank's states on the CPU. */
const GPU_THREADS = 4;

/** Returns the threads of each of the job's ranks on this machine. @param ranks the job's ranks on this machine */
export function threadsOfRanks(
  { threads_per_rank, gpus }: Pick<AgentDeps, 'threads_per_rank' | 'gpus'>,
  ranks: number,
  { zero }: { zero: Pick<ResolvedJobSpec['zero'], 'offload'> },
): number {
  const share = Math.max(1, Math.floor(usableCores() / ranks));
  return threads_per_rank ?? (gpus && zero.offload === 'none' ? Math.min(GPU_THREADS, share) : share);
}

/** Returns the threads of a process that answers: those of a job's only rank on the device that answers. */
export function threadsOfAnswers({
  threads_per_rank,
  answer_gpus: gpus,
}: Pick<AgentDeps, 'threads_per_rank' | 'answer_gpus'>): number {
  return threadsOfRanks({ threads_per_rank, gpus }, 1, { zero: { offload: 'none' } });
}

/** Returns the number of a placement's ranks on this machine. */
export function localRanks({ placements }: Pick<PlacedContext, 'placements'>): number {
  return placements[0]?.slots ?? 1;
}

/** Finds the worker of a rank. Ranks are numbered in the order of the placement (worker/agent/link/assemble.ts). */
export function workerOf(placements: readonly WorkerSlots[], rank: number): string | undefined {
  let first = 0;
  return placements.find(({ slots }) => {
    first += slots;
    return rank < first;
  })?.worker_id;
}

/** Returns the threads of each of this machine's ranks. */
export function threadsPerRank({
  deps,
  job,
  placements,
}: Pick<PlacedContext, 'deps' | 'job' | 'placements'>): number {
  return threadsOfRanks(deps, localRanks({ placements }), job.spec);
}

/** Writes the pending metrics and log lines; nothing can be written after the job is returned or has ended. */
export async function flushReports({
  reporter,
  logs,
}: Pick<AttemptContext, 'reporter' | 'logs'>): Promise<void> {
  await Promise.all([reporter.flush(), logs.flush()]);
}

/** Appends an event to the job's stream. Failures are only logged, because they must not stop the attempt. */
export async function emit(
  ctx: Pick<AttemptContext, 'deps' | 'lease' | 'log'>,
  type: string,
  data: Record<string, unknown>,
  options: Pick<EventInput, 'root_cause'> = {},
): Promise<void> {
  const event = { type, data, at: new Date().toISOString(), ...options };
  try {
    await ctx.lease.call((jobId, execution) => ctx.deps.store.appendEvent(jobId, execution, event));
  } catch (error) {
    ctx.log.warn({ err: error, type }, 'event not written');
  }
}

/** Repeats a call of the object store while it fails with retryable errors, until the lease is lost. */
export function retryStorage<T>(
  { deps, lease }: Pick<AttemptContext, 'deps' | 'lease'>,
  operation: () => Promise<T>,
): Promise<T> {
  return retryTransient(operation, deps.timing.storage, lease.lost);
}

/** Connection settings between this agent and those of other machines. */
export interface WorldLinks {
  /** IP address of this machine at which ranks and links listen. */
  address: string;
  server: LinkServer;
}
