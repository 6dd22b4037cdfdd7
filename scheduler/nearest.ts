/**
 * Choice of workers for the ranks of one job: on as few machines as possible, and in as few domains of the network.
 * Each level of the topology is filled like the machines below it.
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
 * Chooses the fullest domain that has room for all ranks, so that whole ones stay free for large jobs. If none has
 * room, chooses the emptiest one and places the rest in the same way. Within a domain the next level decides, and
 * within the smallest domain the machine.
 * @param workers have at least `ranks` free slots together
 */
export function nearest(workers: readonly FreeWorker[], ranks: number, level = 1): Placement[] {
  const isSmallest = workers.every(({ domains }) => domains.length <= level);
  const choices = isSmallest ? workers : groupedBy(workers, level);
  const used = new Set<FreeWorker>();
  const placements: Placement[] = [];
  for (let left = ranks; left > 0; ) {
    const choice = bestOf(choices, left, used);
    const here = Math.min(choice.free, left);
    if ('workers' in choice) placements.push(...nearest((choice as Domain).workers, here, level + 1));
    else placements.push({ worker_id: choice.id, ranks: here });
    used.add(choice);
    left -= here;
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
    const id = worker.domains[level] ?? '';
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
  used: ReadonlySet<FreeWorker>,
): T {
  let best: T | null = null;
  for (const choice of choices)
    if (!used.has(choice) && (!best || comesBefore(choice, best, ranks))) best = choice;
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
