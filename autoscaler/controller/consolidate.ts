/**
 * Machines to vacate: their jobs fit on other machines, and the machine has cost more since then than moving them.
 * This is the rule of ski rental, which needs no forecast: moves never cost more than unneeded machines have cost.
 */

import type { PoolPolicy } from '../../platform/config/autoscale-pools.js';
import { vacatable } from '../../scheduler/vacate.js';
import { type KnownMachine, MAX_GAP_MS } from './observe.js';
import type { PoolSnapshot, PoolState } from './types.js';

interface Consolidation {
  /** Ids of the machines to vacate. */
  vacated: string[];
  vacatable_since: PoolState['vacatable_since'];
}

/**
 * @param machines machines that stay
 * @param surplus ranks of machines that no job demands
 */
export function consolidate(
  { move_seconds, idle_seconds }: PoolPolicy,
  { scheduling }: PoolSnapshot,
  stored: PoolState,
  { machines, surplus, now }: { machines: readonly KnownMachine[]; surplus: number; now: number },
): Consolidation {
  const [vacated, vacatableSince]: [string[], PoolState['vacatable_since']] = [[], {}];
  const stuck = new Set(machines.filter((machine) => isStuck(machine, scheduling)).map(({ id }) => id));
  const candidates = machines.filter(({ id, ranks }) => stuck.has(id) || (ranks > 0 && ranks <= surplus));
  if (move_seconds === null || candidates.length === 0) return { vacated, vacatable_since: vacatableSince };
  const restarting = vacatable(
    scheduling,
    candidates.map(({ id, workers }) => ({ id, workers: workers.map((worker) => worker.id) })),
  );
  // Nothing is known of the time between distant observations.
  const known = now - (stored.observed_at ?? 0) > MAX_GAP_MS ? {} : stored.vacatable_since;
  let left = surplus;
  const ranksOf = new Map(candidates.map(({ id, ranks }) => [id, ranks]));
  for (const [id, restarts] of restarting) {
    if (stuck.has(id)) {
      vacated.push(id);
      continue;
    }
    const ranks = ranksOf.get(id) ?? 0;
    const since = known[id] ?? now;
    vacatableSince[id] = since;
    const keptSeconds = (now - since) / 1000;
    if (ranks > left || keptSeconds < idle_seconds + (move_seconds * restarts) / ranks) continue;
    left -= ranks;
    vacated.push(id);
  }
  return { vacated, vacatable_since: vacatableSince };
}

/** Returns whether a machine was vacated before and has jobs whose move failed: their targets are gone. */
function isStuck({ workers }: KnownMachine, { running }: PoolSnapshot['scheduling']): boolean {
  if (!workers.some(({ retiring }) => retiring)) return false;
  const ids = new Set(workers.map(({ id }) => id));
  const jobs = running.filter(({ placements }) => placements.some(({ worker_id }) => ids.has(worker_id)));
  return jobs.length > 0 && jobs.every(({ move }) => !move);
}
