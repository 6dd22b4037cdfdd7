import type {
  Decision,
  Demand,
  Placement,
  RunningJob,
  SchedulerWorker,
  Snapshot,
  WaitingJob,
} from '../../scheduler/types.js';
import { nowText, redisCall, type StoreContext } from '../core/context.js';
import type { Unsubscribe } from '../core/subscriptions.js';

interface PoolSnapshot {
  /** Version of the pool; a decision on the snapshot is applied only at this version. */
  version: string;
  snapshot: Snapshot;
  /** Delayed jobs: they begin to wait at their `queued_at`, by the clock of `snapshot.now`. */
  delayed: WaitingJob[];
}

/** Slots of one worker that one job holds. */
export interface WorkerSlots {
  worker_id: string;
  slots: number;
}

interface ApplyOptions {
  /** Timeout of an allocation's claim. An unclaimed allocation is taken back; the job keeps its turn. */
  claim_ms: number;
  /** Jobs whose record should state that they wait for slots (`waiting_for_capacity`). */
  waiting: readonly string[];
}

/** Delayed jobs that begin to wait per call; the rest follow in the next call. */
const DUE_BATCH = 1000;
/** Workers that one call of `removedWorkers` returns at most. */
const REMOVED_BATCH = 100;

/** Reply of read_snapshot.lua. */
type RawSnapshot = [
  version: string,
  now: string,
  workers: RawWorker[],
  holders: string[][],
  waiting: string[],
  served: string[],
];
type RawWorker = [
  id: string,
  slots: number,
  draining: number,
  group: string,
  gpu_bytes: string,
  topology: string,
];

/** HOLDER_FIELDS of core/commands/pool.lua. */
const HOLDER_FIELDS = [
  'lease_until',
  'allocated_to',
  'allocated_until',
  'granted_priority',
  'placed_at',
  'placements',
  'project',
  'priority',
  'preemption_request',
  'preemptor',
  'move',
  'ranks_min',
  'ranks_max',
  'ranks_multiple',
  'requested_ranks',
  'gpu_bytes',
  'avoided',
] as const;

type DemandText = Record<
  'ranks_min' | 'ranks_max' | 'ranks_multiple' | 'requested_ranks' | 'gpu_bytes',
  string
>;
type Holder = Record<(typeof HOLDER_FIELDS)[number], string>;
/** Fields that describe_waiting of core/commands/state.lua writes. */
type Waiting = DemandText &
  Pick<Holder, 'project' | 'priority' | 'avoided'> & { queued_at: number; delayed: boolean };

/**
 * Methods for the scheduler: a snapshot of a pool, and the decision made on it.
 *
 * A decision is applied whole or not at all. It is refused if a worker, a demand or an allocation has changed since the
 * snapshot was read. Newly queued jobs and newly free slots do not matter. So any number of programs may decide at
 * once: one is enough, and a second one does no harm.
 */
export type Scheduling = ReturnType<typeof scheduling>;

export function scheduling(context: StoreContext) {
  const { commands, redis, prefix, subscriptions } = context;
  const removed = `${prefix}:removed-workers`;
  return {
    /**
     * Reads a pool, after everything that is due: delayed jobs begin to wait, ended allocations are taken
     * back, expired workers are removed.
     * @param growIntervalMs minimum time between two allocations of a job that grows
     */
    readSnapshot: (pool: string, growIntervalMs: number): Promise<PoolSnapshot> =>
      readSnapshot(context, pool, growIntervalMs),

    /** @returns false, without a change, when the pool has changed; the decision must be computed again */
    async applyDecision(
      pool: string,
      version: string,
      decision: Omit<Decision, 'waiting'>,
      { claim_ms, waiting }: ApplyOptions,
    ): Promise<boolean> {
      const call = { pool, version, claim_ms, waiting, at: nowText(), ...decisionCall(decision) };
      const [done] = await commands.run('apply_decision', call);
      return done === '1';
    },

    /** Lists pools that have, or had until recently, a worker or a job. */
    schedulerPools: (): Promise<string[]> => redisCall(redis.smembers(`${prefix}:pools`)),
    /**
     * Calls back with each pool that needs a new decision, and with null when messages may have been missed.
     */
    watchPools: (onChange: (pool: string | null) => void): Promise<Unsubscribe> =>
      subscriptions.add(`${prefix}:pools:changed`, onChange),
    /**
     * Lists some of the workers that are gone and whose queues must be removed; `forgetRemovedWorkers`
     * confirms the removal.
     */
    removedWorkers: (): Promise<string[]> => redisCall(redis.srandmember(removed, REMOVED_BATCH)),

    async forgetRemovedWorkers(ids: readonly string[]): Promise<void> {
      if (ids.length > 0) await redisCall(redis.srem(removed, ...ids));
    },

    /**
     * Records that an entry was put into a worker's queue. A worker that is already gone is listed by
     * `removedWorkers` again.
     */
    async noteDelivery(workerId: string): Promise<void> {
      await commands.run('note_delivery', { worker_id: workerId });
    },
  };
}

/** Returns the scheduler's view of a pool. @param growIntervalMs as in `Scheduling.readSnapshot` */
export async function readSnapshot(
  { commands }: StoreContext,
  pool: string,
  growIntervalMs = 0,
): Promise<PoolSnapshot> {
  const reply = await commands.run('read_snapshot', { pool, limit: DUE_BATCH });
  const [version, nowMs, workers, holders, described, served] = reply as RawSnapshot;
  const now = Number(nowMs);
  const jobs = inPairs(described).map(([id, text]) => ({ id, described: JSON.parse(text) as Waiting }));
  const waitingWhere = (delayed: boolean) =>
    jobs.flatMap((job) => (job.described.delayed === delayed ? [waitingOf(job.id, job.described, now)] : []));
  return {
    version,
    delayed: waitingWhere(true),
    snapshot: {
      now,
      workers: workers.map(workerOf),
      running: holders.map((entry) => runningOf(entry, now, growIntervalMs)),
      waiting: waitingWhere(false),
      served_at: servedOf(served),
    },
  };
}

export function slotsOf({ worker_id, ranks }: Placement): WorkerSlots {
  return { worker_id, slots: ranks };
}

/** Returns placements as JSON of slots by worker. */
export function placementsText(placements: readonly Placement[]): string {
  return JSON.stringify(placements.map(slotsOf));
}

/** Parses JSON of slots by worker; '' stands for none. */
function placementsOf(text: string): Placement[] | null {
  if (text === '') return null;
  return (JSON.parse(text) as WorkerSlots[]).map(({ worker_id, slots }) => ({ worker_id, ranks: slots }));
}

function decisionCall({ starts, growth, requests, withdrawn }: Omit<Decision, 'waiting'>) {
  return {
    starts: starts.map(({ job_id, group, placements, granted_priority }) => ({
      job_id,
      group,
      worker: placements[0]?.worker_id,
      placements: placementsText(placements),
      granted_priority,
    })),
    growth: growth.map(({ job_id, placements }) => ({ job_id, placements: placementsText(placements) })),
    requests: requests.map(({ job_id, request }) => ({ job_id, ranks: request.ranks, for_job: request.for })),
    withdrawn,
  };
}

function workerOf([id, slots, draining, group, gpuBytes, topology]: RawWorker): SchedulerWorker {
  return {
    id,
    group,
    slots,
    schedulable: draining === 0,
    gpu_bytes: gpuBytes === '' ? null : Number(gpuBytes),
    topology: JSON.parse(topology),
  };
}

function runningOf([id = '', claimed, ...values]: string[], now: number, growIntervalMs: number): RunningJob {
  const holder = Object.fromEntries(HOLDER_FIELDS.map((field, i) => [field, values[i] ?? ''])) as Holder;
  const { project, priority, granted_priority, placements, placed_at, preemption_request, preemptor, move } =
    holder;
  return {
    id,
    project,
    priority: Number(priority),
    granted_priority: Number(granted_priority),
    demand: demandOf(holder),
    placements: placementsOf(placements) ?? [],
    may_change: Number(claimed) === 1 && now - Number(placed_at) >= growIntervalMs,
    request: preemption_request === '' ? null : { ranks: Number(preemption_request), for: preemptor },
    move: placementsOf(move),
    avoid: avoidOf(holder.avoided, now),
  };
}

function waitingOf(id: string, job: Waiting, now: number): WaitingJob {
  const { project, priority, queued_at } = job;
  return {
    id,
    project,
    priority: Number(priority),
    queued_at,
    demand: demandOf(job),
    avoid: avoidOf(job.avoided, now),
  };
}

/**
 * Returns the demand: `requested` ranks, or fewer, but not below the document's minimum; always whole sets of experts.
 */
function demandOf({ ranks_min, ranks_max, ranks_multiple, requested_ranks, gpu_bytes }: DemandText): Demand {
  const multiple = Number(ranks_multiple);
  const most = Math.min(Number(requested_ranks), Number(ranks_max));
  const want = most - (most % multiple);
  const steps: [ranks: number, bytes: number][] = gpu_bytes === '' ? [] : JSON.parse(gpu_bytes);
  return {
    need: Math.min(Number(ranks_min), want),
    want,
    multiple,
    memory: steps.map(([ranks, bytes]) => ({ ranks, bytes })),
  };
}

function avoidOf(text: string | undefined, now: number): WaitingJob['avoid'] {
  if (!text) return [];
  const entries: { pair: [string, string]; until: number }[] = JSON.parse(text);
  return entries.filter(({ until }) => until > now).map(({ pair }) => pair);
}

function servedOf(flat: readonly string[]): Map<string, Map<string, number>> {
  const served = new Map<string, Map<string, number>>();
  for (const [name, at] of inPairs(flat)) {
    // Project names contain no spaces.
    const space = name.indexOf(' ');
    const [project, group] = [name.slice(0, space), name.slice(space + 1)];
    served.set(project, (served.get(project) ?? new Map<string, number>()).set(group, Number(at)));
  }
  return served;
}

/** Returns the pairs of names and values of a flat reply. */
export function inPairs(flat: readonly string[]): [string, string][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i] ?? '', flat[2 * i + 1] ?? '']);
}
