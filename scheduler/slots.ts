/** Slots of a pool during a decision: free ones, and those held for an earlier job. */
import { rangesOf, ranksIn } from './demand.js';
import { domainsOf, type FreeWorker, nearest, nearestTo } from './nearest.js';
import type { AvoidedPair, Demand, Placement, RunningJob, SchedulerWorker, Snapshot } from './types.js';

type Worker = SchedulerWorker & FreeWorker;

/** Workers of a group with equal GPU memory. */
interface Kind {
  bytes: number;
  workers: Worker[];
  slots: number;
  free: number;
}

export interface Group {
  name: string;
  kinds: Kind[];
  /** True if its slots are held for an earlier job in the order. */
  held: boolean;
}

/** Ranks that a group has for a job, all on GPUs with at least `bytes` of memory. */
interface Fit {
  ranks: number;
  bytes: number;
}

/** Job that holds slots, and those that are reserved for its move. */
type Holder = Pick<RunningJob, 'placements'> & Partial<Pick<RunningJob, 'move'>>;

export class Slots {
  readonly groups = new Map<string, Group>();
  private readonly workers = new Map<string, { worker: Worker; kind: Kind; group: Group }>();

  constructor(workers: Snapshot['workers'], running: readonly Holder[]) {
    // Sorted by name, so that the order of the list does not matter.
    const groups = [...new Set(workers.map(({ group }) => group))].sort();
    for (const name of groups) this.groups.set(name, { name, kinds: [], held: false });
    for (const worker of workers) this.add(worker);
    for (const { placements, move } of running) {
      this.take(placements);
      this.take(beyond(placements, move ?? []));
    }
  }

  /** Returns the groups that could run a job on an empty pool. */
  groupsFor(demand: Demand, avoid: readonly AvoidedPair[]): Group[] {
    return [...this.groups.values()].filter((group) =>
      choicesOf(avoid).some((without) => fitOf(group, demand, 'slots', without) !== null),
    );
  }

  /** Returns the group of a running job; null if all its workers are gone. */
  groupOf(placements: readonly Placement[]): Group | null {
    for (const { worker_id } of placements) {
      const known = this.workers.get(worker_id);
      if (known) return known.group;
    }
    return null;
  }

  /** Returns the memory per rank of a running job: that of the smallest GPU of its workers. */
  memoryOf(placements: readonly Placement[]): number {
    const memory = placements.map(({ worker_id }) => this.workers.get(worker_id)?.kind.bytes);
    return Math.min(...memory.map((bytes) => bytes ?? Number.POSITIVE_INFINITY));
  }

  /** Counts the free slots of a group for ranks that need `bytes` of memory. */
  freeIn(group: Group, bytes: number): number {
    return group.held ? 0 : available(group, bytes, 'free', NONE);
  }

  /**
   * Allocates slots for a starting job: in the group with the most ranks for it, and among equals in the one
   * with the fewest free slots. Of each avoided pair of workers it uses at most one.
   * @returns the group and its placements, the leader's first; null and no allocation if the job does not fit
   * now
   */
  start(
    demand: Demand,
    groups: readonly Group[],
    avoid: readonly AvoidedPair[],
  ): { group: Group; placements: Placement[] } | null {
    for (const without of choicesOf(avoid)) {
      const started = this.startWithout(demand, groups, without);
      if (started) return started;
    }
    return null;
  }

  private startWithout(demand: Demand, groups: readonly Group[], without: ReadonlySet<string>) {
    let best: { group: Group; fit: Fit } | null = null;
    for (const group of groups) {
      const fit = group.held ? null : fitOf(group, demand, 'free', without);
      if (fit && (!best || isBetter(group, fit, best))) best = { group, fit };
    }
    if (!best) return null;
    const { group, fit } = best;
    const placements = nearest(freeWorkers(group, fit.bytes, without), fit.ranks);
    this.take(placements);
    return { group, placements };
  }

  /**
   * Allocates more slots for a running job, on its own workers first.
   * @returns all its placements; null if it gets none
   */
  grow(demand: Demand, placements: readonly Placement[], avoid: readonly AvoidedPair[]): Placement[] | null {
    const own = new Set(placements.map(({ worker_id }) => worker_id));
    const without = new Set(avoid.flat().filter((id) => !own.has(id)));
    const group = this.groupOf(placements);
    const before = placements.reduce((sum, { ranks }) => sum + ranks, 0);
    if (!group || group.held) return null;
    for (const range of rangesOf(demand)) {
      const free = available(group, range.bytes, 'free', without);
      const ranks = ranksIn(demand, range, before + free);
      if (ranks > before) return this.extend(group, range.bytes, placements, ranks - before, without);
    }
    return null;
  }

  private add(worker: SchedulerWorker): void {
    const slots = worker.schedulable ? worker.slots : 0;
    const bytes = worker.gpu_bytes ?? Number.POSITIVE_INFINITY;
    const group = this.groups.get(worker.group) as Group;
    const known = group.kinds.find((other) => other.bytes === bytes);
    const kind = known ?? { bytes, workers: [], slots: 0, free: 0 };
    if (!known) group.kinds.push(kind);
    const entry = { ...worker, slots, free: slots, domains: domainsOf(worker.topology) };
    kind.workers.push(entry);
    kind.slots += slots;
    kind.free += slots;
    this.workers.set(worker.id, { worker: entry, kind, group });
  }

  /**
   * Takes slots. The number may exceed the free slots of a worker that drains or whose slots were reduced.
   */
  private take(placements: readonly Placement[]): void {
    for (const { worker_id, ranks } of placements) {
      const known = this.workers.get(worker_id);
      if (!known) continue;
      const taken = Math.min(known.worker.free, ranks);
      known.worker.free -= taken;
      known.kind.free -= taken;
    }
  }

  private extend(
    group: Group,
    bytes: number,
    placements: readonly Placement[],
    more: number,
    without: ReadonlySet<string>,
  ): Placement[] {
    const all = placements.map((placement) => ({ ...placement }));
    let left = more;
    for (const placement of all) {
      const known = this.workers.get(placement.worker_id);
      const ranks = known && known.kind.bytes >= bytes ? Math.min(known.worker.free, left) : 0;
      this.take([{ worker_id: placement.worker_id, ranks }]);
      placement.ranks += ranks;
      left -= ranks;
    }
    const own = placements.flatMap(({ worker_id }) => {
      const known = this.workers.get(worker_id);
      return known ? [known.worker.domains] : [];
    });
    const added = nearestTo(own, freeWorkers(group, bytes, without), left);
    this.take(added);
    return [...all, ...added];
  }
}

const NONE: ReadonlySet<string> = new Set();

/** Returns the ranks of `next` that exceed those of `held` on the same worker. */
function beyond(held: readonly Placement[], next: readonly Placement[]): Placement[] {
  const before = new Map(held.map(({ worker_id, ranks }) => [worker_id, ranks]));
  return next.flatMap(({ worker_id, ranks }) => {
    const more = ranks - (before.get(worker_id) ?? 0);
    return more > 0 ? [{ worker_id, ranks: more }] : [];
  });
}

/**
 * Returns the sets of workers to leave out so that no avoided pair is complete: the second of each pair, or
 * else the first.
 */
function choicesOf(avoid: readonly AvoidedPair[]): ReadonlySet<string>[] {
  if (avoid.length === 0) return [NONE];
  return [new Set(avoid.map(([, second]) => second)), new Set(avoid.map(([first]) => first))];
}

function available(
  { kinds }: Group,
  bytes: number,
  counted: 'slots' | 'free',
  without: ReadonlySet<string>,
): number {
  let sum = 0;
  for (const kind of kinds) {
    if (kind.bytes < bytes) continue;
    sum += kind[counted];
    if (without.size === 0) continue;
    for (const worker of kind.workers) sum -= without.has(worker.id) ? worker[counted] : 0;
  }
  return sum;
}

/** Returns the most ranks that a group has for a job, among its free slots or all. */
function fitOf(
  group: Group,
  demand: Demand,
  counted: 'slots' | 'free',
  without: ReadonlySet<string>,
): Fit | null {
  for (const range of rangesOf(demand)) {
    const ranks = ranksIn(demand, range, available(group, range.bytes, counted, without));
    if (ranks > 0) return { ranks, bytes: range.bytes };
  }
  return null;
}

function isBetter(group: Group, fit: Fit, best: { group: Group; fit: Fit }): boolean {
  const order =
    best.fit.ranks - fit.ranks ||
    available(group, fit.bytes, 'free', NONE) - available(best.group, best.fit.bytes, 'free', NONE);
  return order < 0 || (order === 0 && group.name < best.group.name);
}

/** Returns the workers with free slots on GPUs with at least `bytes` of memory. */
function freeWorkers({ kinds }: Group, bytes: number, without: ReadonlySet<string>): Worker[] {
  const found: Worker[] = [];
  for (const kind of kinds) {
    if (kind.bytes < bytes || kind.free === 0) continue;
    for (const worker of kind.workers) if (worker.free > 0 && !without.has(worker.id)) found.push(worker);
  }
  return found;
}
