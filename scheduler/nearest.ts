/**
 * Choice of workers for the ranks of one job: on as few machines as possible, and in as few domains of the network.
 * Domains are filled like machines, so that whole ones stay free for large jobs.
 */
import type { Placement, SchedulerWorker } from './types.js';

/** Worker with free slots. */
export interface FreeWorker extends Pick<SchedulerWorker, 'id' | 'gpu_bytes'> {
  free: number;
  /** Domains that contain it, by level: '' for the network, then the paths of its topology. */
  domains: readonly string[];
}

/** Workers of a domain together. */
interface Domain extends FreeWorker {
  workers: FreeWorker[];
}

/** Returns the domains of a topology by level. */
export function domainsOf(topology: readonly string[]): string[] {
  return ['', ...topology.map((_, level) => topology.slice(0, level + 1).join('/'))];
}

/**
 * Chooses the smallest domain with room for all ranks, a machine if possible, and of several the fullest. If none has
 * room, fills the emptiest of the largest domains, and places the rest in the same way.
 * @param workers have at least `ranks` free slots together
 * @param level largest domains that are chosen: 1 for the first level of the topology
 */
export function nearest(workers: readonly FreeWorker[], ranks: number, level = 1): Placement[] {
  if (ranks === 0) return [];
  const machine = bestOf(workers, ranks);
  if (machine.free >= ranks) return [{ worker_id: machine.id, ranks }];
  const depth = workers.reduce((most, { domains }) => Math.max(most, domains.length), 1);
  if (level >= depth) return onMachines(workers, ranks);
  const domains = groupedBy(workers, level);
  const used = new Set<FreeWorker>();
  const placements: Placement[] = [];
  for (let left = ranks; ; ) {
    const domain = bestOf(domains, left, used);
    if (domain.free >= left) {
      const others = domains.filter((each) => !used.has(each)).flatMap((each) => each.workers);
      placements.push(...inSmallest(others, left, level, depth));
      return placements;
    }
    placements.push(...nearest(domain.workers, domain.free, level + 1));
    used.add(domain);
    left -= domain.free;
  }
}

/** Chooses workers of the smallest domain with room for all ranks; one of the largest has room. */
function inSmallest(workers: readonly FreeWorker[], ranks: number, level: number, depth: number) {
  const machine = bestOf(workers, ranks);
  if (machine.free >= ranks) return [{ worker_id: machine.id, ranks }];
  for (let at = depth - 1; ; at -= 1) {
    const domain = bestOf(groupedBy(workers, at), ranks);
    if (domain.free >= ranks || at === level) return nearest(domain.workers, ranks, at + 1);
  }
}

/** Chooses the fullest machine with room for all ranks; if none has room, fills the emptiest one and goes on. */
function onMachines(workers: readonly FreeWorker[], ranks: number): Placement[] {
  const used = new Set<FreeWorker>();
  const placements: Placement[] = [];
  for (let left = ranks; left > 0; ) {
    const worker = bestOf(workers, left, used);
    placements.push({ worker_id: worker.id, ranks: Math.min(worker.free, left) });
    used.add(worker);
    left -= Math.min(worker.free, left);
  }
  return placements;
}

/**
 * Chooses workers for more ranks of a job: first in the smallest domains that its workers are in.
 * @param own domains of the job's workers
 */
export function nearestTo(
  own: readonly FreeWorker['domains'][],
  workers: readonly FreeWorker[],
  ranks: number,
): Placement[] {
  const placements: Placement[] = [];
  let others = workers;
  let left = ranks;
  const deepest = own.reduce((most, { length }) => Math.max(most, length), 1);
  for (let level = deepest - 1; left > 0; level -= 1) {
    const domains = new Set(own.flatMap((path) => path[level] ?? []));
    const isNear = (worker: FreeWorker) => level <= 0 || domains.has(worker.domains[level] ?? '');
    const near = others.filter(isNear);
    const free = near.reduce((sum, worker) => sum + worker.free, 0);
    const here = level > 0 ? Math.min(free, left) : left;
    placements.push(...nearest(near, here, Math.max(level, 1)));
    left -= here;
    others = others.filter((worker) => !isNear(worker));
  }
  return placements;
}

function groupedBy(workers: readonly FreeWorker[], level: number): Domain[] {
  const found = new Map<string, Domain>();
  for (const worker of workers) {
    // A worker that knows fewer levels is in no domain of this one.
    const id = worker.domains[level] ?? worker.domains.at(-1) ?? '';
    const domain = found.get(id) ?? { id, free: 0, gpu_bytes: null, domains: [], workers: [] };
    domain.free += worker.free;
    domain.workers.push(worker);
    found.set(id, domain);
  }
  return [...found.values()];
}

function bestOf<T extends FreeWorker>(
  choices: readonly T[],
  ranks: number,
  used?: ReadonlySet<FreeWorker>,
): T {
  let best: T | null = null;
  for (const choice of choices)
    if (!used?.has(choice) && (!best || comesBefore(choice, best, ranks))) best = choice;
  if (!best) throw new Error('no free slot is left for a rank');
  return best;
}

/** The fullest with room for `ranks`, on the smallest sufficient GPUs; the emptiest if none has room. */
function comesBefore(a: FreeWorker, b: FreeWorker, ranks: number): boolean {
  const [aHolds, bHolds] = [a.free >= ranks, b.free >= ranks];
  if (aHolds !== bHolds) return aHolds;
  if (a.free !== b.free) return aHolds ? a.free < b.free : a.free > b.free;
  const [aBytes, bBytes] = [a.gpu_bytes ?? 0, b.gpu_bytes ?? 0];
  return aBytes === bBytes ? a.id < b.id : aBytes < bBytes;
}
