/** The slots of a pool while a decision is made: what is free where, and what is kept for a job that comes first. */
import { rangesOf, ranksIn } from './demand.js';
import type { AvoidedPair, Demand, Placement, RunningJob, SchedulerWorker, Snapshot } from './types.js';

interface Worker extends SchedulerWorker {
  free: number;
}

/** Workers of a group whose GPUs have the same memory. */
interface Kind {
  bytes: number;
  workers: Worker[];
  slots: number;
  free: number;
}

export interface Group {
  name: string;
  kinds: Kind[];
  /** No job that comes later in the order gets its slots. */
  kept: boolean;
}

/** Ranks that a group has for a job, all on GPUs with at least so many bytes. */
interface Fit {
  ranks: number;
  bytes: number;
}

export class Slots {
  readonly groups = new Map<string, Group>();
  private readonly workers = new Map<string, { worker: Worker; kind: Kind; group: Group }>();

  constructor(workers: Snapshot['workers'], running: readonly Pick<RunningJob, 'placements'>[]) {
    // By name, so that the order of the list decides nothing.
    const groups = [...new Set(workers.map(({ group }) => group))].sort();
    for (const name of groups) this.groups.set(name, { name, kinds: [], kept: false });
    for (const worker of workers) this.add(worker);
    for (const { placements } of running) this.take(placements);
  }

  /** The groups that could run a job if nothing else ran. */
  groupsFor(demand: Demand, avoid: readonly AvoidedPair[]): Group[] {
    return [...this.groups.values()].filter((group) =>
      choicesOf(avoid).some((without) => fitOf(group, demand, 'slots', without) !== null),
    );
  }

  /** The group of a job that runs; null when all its workers are gone. */
  groupOf(placements: readonly Placement[]): Group | null {
    for (const { worker_id } of placements) {
      const known = this.workers.get(worker_id);
      if (known) return known.group;
    }
    return null;
  }

  /** Memory that each rank of a running job has: of the smallest GPU of its workers. */
  memoryOf(placements: readonly Placement[]): number {
    const memory = placements.map(({ worker_id }) => this.workers.get(worker_id)?.kind.bytes);
    return Math.min(...memory.map((bytes) => bytes ?? Number.POSITIVE_INFINITY));
  }

  /** Free slots of a group for ranks that need so many bytes. */
  freeIn(group: Group, bytes: number): number {
    return group.kept ? 0 : available(group, bytes, 'free', NONE);
  }

  /**
   * Takes slots for a job that begins: in the group that has the most ranks for it, and among equals in the one with the fewest
   * free slots. Of the workers that could not reach each other it gets one or the other.
   * @returns the group and its placements, the leader's first; null where it does not fit now, then nothing is taken
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
      const fit = group.kept ? null : fitOf(group, demand, 'free', without);
      if (fit && (!best || isBetter(group, fit, best))) best = { group, fit };
    }
    if (!best) return null;
    const { group, fit } = best;
    return { group, placements: this.fill(group, fit.bytes, fit.ranks, without) };
  }

  /**
   * Takes more slots for a job that runs, on its own workers first.
   * @returns all its placements; null when it gets none
   */
  grow(demand: Demand, placements: readonly Placement[], avoid: readonly AvoidedPair[]): Placement[] | null {
    const own = new Set(placements.map(({ worker_id }) => worker_id));
    const without = new Set(avoid.flat().filter((id) => !own.has(id)));
    const group = this.groupOf(placements);
    const before = placements.reduce((sum, { ranks }) => sum + ranks, 0);
    if (!group || group.kept) return null;
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
    const entry = { ...worker, slots, free: slots };
    kind.workers.push(entry);
    kind.slots += slots;
    kind.free += slots;
    this.workers.set(worker.id, { worker: entry, kind, group });
  }

  /** More than is free is taken from a worker whose number of slots became smaller, or that drains. */
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
    return [...all, ...this.fill(group, bytes, left, without)];
  }

  /**
   * The fullest worker that has room for all of the ranks, so that whole machines stay free for large jobs. If none has, the
   * emptiest one is filled, and the rest is placed in the same way: on as few machines as possible.
   */
  private fill(group: Group, bytes: number, ranks: number, without: ReadonlySet<string>): Placement[] {
    const placements: Placement[] = [];
    const kinds = group.kinds.filter((kind) => kind.bytes >= bytes);
    for (let left = ranks; left > 0; ) {
      const worker = bestWorker(kinds, left, without);
      const placement = { worker_id: worker.id, ranks: Math.min(worker.free, left) };
      this.take([placement]);
      placements.push(placement);
      left -= placement.ranks;
    }
    return placements;
  }
}

const NONE: ReadonlySet<string> = new Set();

/** Workers that a job may do without, so that it gets no pair whole: the second of each pair, or else the first. */
function choicesOf(avoid: readonly AvoidedPair[]): ReadonlySet<string>[] {
  if (avoid.length === 0) return [NONE];
  return [new Set(avoid.map(([, second]) => second)), new Set(avoid.map(([first]) => first))];
}

function available(
  { kinds }: Group,
  bytes: number,
  of: 'slots' | 'free',
  without: ReadonlySet<string>,
): number {
  let sum = 0;
  for (const kind of kinds) {
    if (kind.bytes < bytes) continue;
    sum += kind[of];
    if (without.size === 0) continue;
    for (const worker of kind.workers) sum -= without.has(worker.id) ? worker[of] : 0;
  }
  return sum;
}

/** The most ranks that a group has for a job: among its free slots, or among all. */
function fitOf(group: Group, demand: Demand, of: 'slots' | 'free', without: ReadonlySet<string>): Fit | null {
  for (const range of rangesOf(demand)) {
    const ranks = ranksIn(demand, range, available(group, range.bytes, of, without));
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

/** With room for `ranks` the fullest one, on the smallest GPUs that will do; if none has room, the emptiest one. */
function bestWorker(kinds: readonly Kind[], ranks: number, without: ReadonlySet<string>): Worker {
  let best: Worker | null = null;
  for (const { workers, free } of kinds) {
    if (free === 0) continue;
    for (const worker of workers)
      if (worker.free > 0 && !without.has(worker.id) && (!best || comesBefore(worker, best, ranks)))
        best = worker;
  }
  if (!best) throw new Error('no free slot is left for a rank that was to be placed');
  return best;
}

function comesBefore(a: Worker, b: Worker, ranks: number): boolean {
  const [aHolds, bHolds] = [a.free >= ranks, b.free >= ranks];
  if (aHolds !== bHolds) return aHolds;
  if (a.free !== b.free) return aHolds ? a.free < b.free : a.free > b.free;
  const [aBytes, bBytes] = [a.gpu_bytes ?? 0, b.gpu_bytes ?? 0];
  return aBytes === bBytes ? a.id < b.id : aBytes < bBytes;
}
