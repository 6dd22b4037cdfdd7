/**
 * Deadlines of gangs: a job that needs more ranks than are free keeps the machines that have come for it. If the others
 * do not come, those cost money for nothing; after a deadline they are given up, and tried again later.
 */
import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import type { JobDemand, PoolState, WorkerView } from './types.js';

/** Longest time until the next try. */
const MAX_PAUSE_MS = 3_600_000;

export interface Gangs {
  /** Waiting jobs that get no machines now. */
  paused: ReadonlySet<string>;
  states: PoolState['gangs'];
}

/**
 * Advances the deadlines. A gang has `gang_seconds` after the last machine of the pool that came, then a pause of twice
 * that time, and twice as long after each further try.
 * @param stored states of the jobs that were granted ranks by the last decision, or are paused
 * @param clock `gap`: nothing is known of the time since the last decision
 */
export function advanceGangs(
  { gang_seconds }: PoolPolicy,
  { jobs, workers }: { jobs: readonly JobDemand[]; workers: readonly WorkerView[] },
  stored: PoolState['gangs'],
  { now, gap }: { now: number; gap: boolean },
): Gangs {
  const free = largestFreeGroup(workers);
  const ranks = workers.reduce((sum, { slots, draining }) => sum + (draining ? 0 : slots), 0);
  const paused = new Set<string>();
  const states: PoolState['gangs'] = {};
  for (const { id, need, held } of jobs) {
    if (held > 0) continue;
    const gang = { ...(stored[id] ?? { ranks, since: now, tries: 0, paused_until: 0 }) };
    states[id] = gang;
    if (gang.paused_until <= now && (gap || free === 0 || need <= free || ranks > gang.ranks)) {
      gang.since = now;
      gang.ranks = ranks;
    } else if (gang.paused_until <= now && now - gang.since >= gang_seconds * 1000) {
      gang.tries += 1;
      gang.paused_until = now + Math.min(MAX_PAUSE_MS, gang_seconds * 1000 * 2 ** gang.tries);
      gang.since = gang.paused_until;
    }
    if (gang.paused_until > now) paused.add(id);
  }
  return { paused, states };
}

/** Keeps the states of jobs that are paused, or for which machines are held. */
export function heldGangs({ paused, states }: Gangs, admitted: readonly JobDemand[]): PoolState['gangs'] {
  const holds = new Set([...paused, ...admitted.map(({ id }) => id)]);
  return Object.fromEntries(Object.entries(states).filter(([id]) => holds.has(id)));
}

/** Free ranks of the group of equal numerics that has the most. */
function largestFreeGroup(workers: readonly WorkerView[]): number {
  const free = new Map<WorkerView['numerics'], number>();
  for (const worker of workers) free.set(worker.numerics, (free.get(worker.numerics) ?? 0) + worker.free);
  return Math.max(0, ...free.values());
}
