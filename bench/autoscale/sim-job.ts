/** Machines and jobs of the simulation, and the scheduler's view of a job. */
import type { Placement, RunningJob, WaitingJob } from '../../scheduler/types.js';
import type { TraceJob } from './traces.js';

const PROJECT = 'sim';

export interface SimMachine {
  id: string;
  launched_at: number;
  ready_at: number;
  free: number;
  jobs: Set<SimJob>;
  /** Announced end of the machine: no job starts there. */
  leaves_at: number;
  /** True once its jobs were asked to move. */
  retiring: boolean;
}

export interface SimJob extends TraceJob {
  id: string;
  left: number;
  ranks: number;
  /** Ranks by machine, the leader's first. */
  placements: Map<SimMachine, number>;
  waits_since: number;
  waited: number;
  grown_at: number;
  granted_priority: number;
  request: RunningJob['request'];
  move: RunningJob['move'];
  /** End of its last restart: it trains from then on. */
  trains_at: number;
  done_at: number | null;
}

export function waitingJob({ id, need, want, waits_since }: SimJob): WaitingJob {
  const demand = { need, want, multiple: 1, memory: [] };
  return { id, project: PROJECT, priority: 0, avoid: [], queued_at: waits_since * 1000, demand };
}

/** The first `ranks` ranks of some placements. */
export function firstOf(placements: SimJob['placements'], ranks: number): Placement[] {
  let left = ranks;
  const kept: Placement[] = [];
  for (const [{ id }, had] of placements) {
    const some = Math.min(had, left);
    if (some > 0) kept.push({ worker_id: id, ranks: some });
    left -= some;
  }
  return kept;
}
