import type { Job, ResolvedJobSpec, TraceContext } from '../../contracts/index.js';
import type { ObjectStoreLocation } from '../../contracts/rank-protocol.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { usableCores } from '../../platform/process/usable-cores.js';
import type {
  CheckpointHolds,
  DatasetRecords,
  EventInput,
  JobAttempts,
  JobChanges,
  JobExecution,
  JobRequests,
  JobStorePort,
  Place,
  PoolPlaces,
  WorldRendezvous,
} from '../../state/index.js';
import type { ChildProcesses } from '../common/child-processes.js';
import type { Timing } from '../common/timing.js';
import type { JobSession } from '../credentials/job-session.js';
import type { Sessions } from '../credentials/sessions.js';
import type { GpuPool } from '../gpus/gpu-pool.js';
import type { Lease } from '../lease/lease.js';
import type { LinkServer } from '../link/link-server.js';
import type { AgentMetrics } from '../metrics/agent-metrics.js';
import type { Departure } from '../preemption/departure.js';
import type { LogReporter } from '../reporting/log-reporter.js';
import type { ProgressReporter } from '../reporting/progress-reporter.js';
import type { Resizer } from './resizer.js';
import type { StopRequests } from './stop-requests.js';

/** What the worker needs of the job store. */
export type WorkerStore = JobAttempts &
  JobExecution &
  Pick<JobRequests, 'getJob' | 'getTrace' | 'listCheckpoints'> &
  CheckpointHolds &
  Pick<JobChanges, 'updateJob'> &
  Pick<PoolPlaces, 'adjustPlaces' | 'announceWorker' | 'listWorkers' | 'withdrawWorker'> &
  WorldRendezvous &
  Pick<DatasetRecords, 'getDataset'> &
  Pick<JobStorePort, 'now'>;

/** What all attempts of one agent share. */
export interface AgentDeps {
  store: WorkerStore;
  objects: ObjectStore;
  /** The same object store, as child processes open it. */
  object_store: ObjectStoreLocation;
  /** Where child processes get credentials of their own; null: they have this agent's. */
  sessions: Sessions | null;
  processes: ChildProcesses;
  /** Absolute; prepared data by the digest of what it is made from. */
  cache_dir: string;
  /** Of what is there and not used, and what is. */
  cache_bytes: number;
  /** Ranks that it could run at once when it started. */
  slots: number;
  /** The scope of bit-exactness of its ranks; null: not known. */
  numerics: string | null;
  /** Which its ranks compute on; null: they compute on the CPU. */
  gpus: GpuPool | null;
  links: WorldLinks;
  /** As it is called where machines come from; null where nobody said. */
  machine: string | null;
  /** Null: cores divided by ranks, of which a rank on a GPU needs few. */
  threads_per_rank: number | null;
  timing: Timing;
  price_per_rank_hour: number;
  metrics: AgentMetrics;
  departure: Departure;
  log: Logger;
}

/** What the parts of one attempt share. */
export interface AttemptContext {
  deps: AgentDeps;
  /** As it was when the attempt was claimed; of a generation, when that began. */
  job: Job;
  /** Of this attempt, in the trace of the request that created the job. */
  trace: TraceContext;
  lease: Lease;
  stops: StopRequests;
  resizer: Resizer;
  reporter: ProgressReporter;
  logs: LogReporter;
  log: Logger;
}

/** What the parts of one generation share: the attempt's, and where its ranks run. */
export interface GenerationContext extends AttemptContext {
  /** This worker's own come first. */
  places: readonly Place[];
  world_size: number;
  /** Whose credentials the job's processes on this machine have; null: this agent's. */
  session: JobSession | null;
}

/** What a rank on a GPU has to do on the CPU, unless its states are updated there. */
const GPU_RANK_THREADS = 4;

/** Threads of each of the job's ranks on this machine. @param ranks how many they are */
export function threadsOfRanks(
  { threads_per_rank, gpus }: Pick<AgentDeps, 'threads_per_rank' | 'gpus'>,
  ranks: number,
  { zero }: Pick<ResolvedJobSpec, 'zero'>,
): number {
  const share = Math.max(1, Math.floor(usableCores() / ranks));
  return threads_per_rank ?? (gpus && zero.offload === 'none' ? Math.min(GPU_RANK_THREADS, share) : share);
}

/** Threads of each of this machine's ranks. */
export function threadsPerRank({
  deps,
  job,
  places,
}: Pick<GenerationContext, 'deps' | 'job' | 'places'>): number {
  return threadsOfRanks(deps, places[0]?.slots ?? 1, job.spec);
}

/** Writes the metrics and log lines that wait; nothing can be written once the job is handed back or has ended. */
export async function flushReports({
  reporter,
  logs,
}: Pick<AttemptContext, 'reporter' | 'logs'>): Promise<void> {
  await Promise.all([reporter.flush(), logs.flush()]);
}

/** Adds an event to the job's stream. What can't be told must not stop what it tells of: failures are only logged. */
export async function emit(
  ctx: AttemptContext,
  type: string,
  data: Record<string, unknown>,
  options: Pick<EventInput, 'blame'> = {},
): Promise<void> {
  const event = { type, data, at: new Date().toISOString(), ...options };
  try {
    await ctx.lease.call((jobId, execution) => ctx.deps.store.appendEvent(jobId, execution, event));
  } catch (error) {
    ctx.log.warn({ err: error, type }, 'event not written');
  }
}

/** How this agent is reached by those of other machines. */
export interface WorldLinks {
  /** IP address of this machine at which ranks and links listen. */
  address: string;
  server: LinkServer;
}
