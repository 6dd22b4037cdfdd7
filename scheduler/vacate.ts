/**
 * Moves that empty machines of a pool: running jobs get slots on other machines that run jobs already. The
 * result of a job is the same wherever it runs, so a move costs only its restart.
 */
import { countRanks } from './order.js';
import { type Group, Slots } from './slots.js';
import type { Move, Placement, RunningJob, Snapshot } from './types.js';

/** Machine with the workers that run on it. */
interface VacatedMachine {
  id: string;
  workers: readonly string[];
}

/**
 * Moves all ranks from some workers to free slots of workers that run jobs already. No job changes its number
 * of ranks, its group or an avoided pair.
 * @returns null if the ranks do not fit, if one of the jobs is not ready to change, or if another job waits for slots
 *   of its group. A job that is unclaimed, preempted or already moving is not ready to change.
 */
export function vacate(snapshot: Snapshot, workerIds: readonly string[]): Move[] | null {
  const vacated = new Set(workerIds);
  const leaving = ({ placements }: RunningJob) =>
    placements.reduce((sum, { worker_id, ranks }) => sum + (vacated.has(worker_id) ? ranks : 0), 0);
  const moving = snapshot.running.filter((job) => leaving(job) > 0);
  if (!moving.every(({ may_change, request, move }) => may_change && !request && !move)) return null;
  const slots = new Slots(targetsOf(snapshot, vacated), snapshot.running);
  const wanted = wantedGroups(snapshot);
  const moves: Move[] = [];
  for (const job of moving.sort((a, b) => leaving(b) - leaving(a) || (a.id < b.id ? -1 : 1))) {
    const group = slots.groupOf(job.placements);
    const placements = group && !wanted.has(group.name) ? replaced(job, group, slots, vacated) : null;
    if (!placements) return null;
    moves.push({ job_id: job.id, placements });
  }
  return moves;
}

/**
 * Selects machines that could be vacated one after the other, the cheapest moves first: those that restart the fewest
 * ranks.
 * @returns for each machine the ranks of the jobs that would restart
 */
export function vacatable(snapshot: Snapshot, machines: readonly VacatedMachine[]): Map<string, number> {
  const ranks = ranksByWorker(snapshot.running);
  const restarts = restartsByWorker(snapshot.running);
  const groupOf = new Map(snapshot.workers.map(({ id, group }) => [id, group]));
  const sumOf = (of: ReadonlyMap<string, number>, workers: readonly string[]) =>
    workers.reduce((sum, id) => sum + (of.get(id) ?? 0), 0);
  const candidates = machines
    .map(({ id, workers }) => ({
      id,
      workers,
      used: sumOf(ranks, workers),
      restarts: sumOf(restarts, workers),
    }))
    .filter(({ used }) => used > 0)
    .sort((a, b) => a.restarts - b.restarts || a.used - b.used || (a.id < b.id ? -1 : 1));
  const found = new Map<string, number>();
  /** Fewest ranks that found no room, by group. */
  const full = new Map<string | undefined, number>();
  let present = snapshot;
  for (const { id, workers, used } of candidates) {
    const group = groupOf.get(workers[0] ?? '');
    if (used >= (full.get(group) ?? Number.POSITIVE_INFINITY)) continue;
    const moves = vacate(present, workers);
    if (moves) {
      found.set(
        id,
        moves.reduce((sum, { placements }) => sum + countRanks(placements), 0),
      );
      present = after(present, moves, workers);
    } else full.set(group, used);
  }
  return found;
}

/** Returns the workers with their slots, which are usable on machines that run jobs and stay. */
function targetsOf({ workers, running }: Snapshot, vacated: ReadonlySet<string>): Snapshot['workers'] {
  const ranks = ranksByWorker(running);
  return workers.map((worker) => ({
    ...worker,
    schedulable: worker.schedulable && !vacated.has(worker.id) && ranks.has(worker.id),
  }));
}

/** Returns the names of the groups that could run a waiting job. */
function wantedGroups({ workers, waiting }: Snapshot): ReadonlySet<string> {
  if (waiting.length === 0) return new Set();
  const slots = new Slots(workers, []);
  return new Set(
    waiting.flatMap(({ demand, avoid }) => slots.groupsFor(demand, avoid).map(({ name }) => name)),
  );
}

/** Returns the placements of a job with as many ranks on the remaining workers; null if they do not fit. */
function replaced(
  { demand, placements, avoid }: RunningJob,
  group: Group,
  slots: Slots,
  vacated: ReadonlySet<string>,
): Placement[] | null {
  const ranks = countRanks(placements);
  const same = { ...demand, need: ranks, want: ranks };
  const kept = placements.filter(({ worker_id }) => !vacated.has(worker_id));
  if (kept.length > 0) return slots.grow(same, kept, avoid);
  return slots.start(same, [group], avoid)?.placements ?? null;
}

/** Returns the pool after some moves. */
function after(snapshot: Snapshot, moves: readonly Move[], workerIds: readonly string[]): Snapshot {
  const moved = new Map(moves.map(({ job_id, placements }) => [job_id, placements]));
  return {
    ...snapshot,
    workers: snapshot.workers.map((worker) =>
      workerIds.includes(worker.id) ? { ...worker, schedulable: false } : worker,
    ),
    running: snapshot.running.map((job) => {
      const placements = moved.get(job.id);
      return placements ? { ...job, placements, may_change: false } : job;
    }),
  };
}

/** Returns, for each worker, the ranks of the jobs that have a rank there. */
function restartsByWorker(running: readonly RunningJob[]): Map<string, number> {
  const restarts = new Map<string, number>();
  for (const { placements } of running) {
    const ranks = countRanks(placements);
    for (const { worker_id } of placements) restarts.set(worker_id, (restarts.get(worker_id) ?? 0) + ranks);
  }
  return restarts;
}

function ranksByWorker(running: readonly RunningJob[]): Map<string, number> {
  const ranks = new Map<string, number>();
  for (const { worker_id, ranks: here } of running.flatMap(({ placements, move }) => [
    ...placements,
    ...(move ?? []),
  ]))
    ranks.set(worker_id, (ranks.get(worker_id) ?? 0) + here);
  return ranks;
}
