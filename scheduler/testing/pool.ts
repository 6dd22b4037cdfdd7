/** Pools for tests of the scheduler: constructed and random ones. */
import fc from 'fast-check';
import type { Demand, RunningJob, SchedulerWorker, Snapshot, WaitingJob } from '../types.js';

export const NOW = Date.parse('2026-01-05T12:00:00Z');
export const MINUTE = 60_000;

export function workerOf(id: string, fields: Partial<SchedulerWorker> = {}): SchedulerWorker {
  return { id, group: 'a', slots: 8, schedulable: true, gpu_bytes: null, topology: [], ...fields };
}

export function demandOf(need: number, want = need, fields: Partial<Demand> = {}): Demand {
  return { need, want, multiple: 1, memory: [], ...fields };
}

export function waitingOf(id: string, fields: Partial<WaitingJob> = {}): WaitingJob {
  return { id, project: 'p', priority: 0, queued_at: NOW, demand: demandOf(1), avoid: [], ...fields };
}

export function runningOf(
  id: string,
  placed: Record<string, number>,
  fields: Partial<RunningJob> = {},
): RunningJob {
  const placements = Object.entries(placed).map(([workerId, ranks]) => ({ worker_id: workerId, ranks }));
  const ranks = Object.values(placed).reduce((sum, some) => sum + some, 0);
  return {
    id,
    project: 'p',
    priority: 0,
    granted_priority: 0,
    demand: demandOf(ranks),
    placements,
    may_change: true,
    avoid: [],
    request: null,
    move: null,
    ...fields,
  };
}

export function snapshotOf(fields: Partial<Snapshot>): Snapshot {
  return { now: NOW, workers: [], running: [], waiting: [], served_at: new Map(), ...fields };
}

const GIB = 2 ** 30;

const workers = fc.uniqueArray(
  fc.record({
    id: fc.integer({ min: 0, max: 99 }).map((number) => `worker-${number}`),
    group: fc.constantFrom('a', 'b'),
    slots: fc.constantFrom(1, 2, 4, 8),
    schedulable: fc.constantFrom(true, true, true, false),
    gpu_bytes: fc.constantFrom(null, 16 * GIB, 80 * GIB),
    topology: fc.constantFrom([], ['x'], ['x', 'n1'], ['x', 'n2'], ['y', 'n3']),
  }),
  { selector: ({ id }) => id, minLength: 1, maxLength: 8 },
);

const demands: fc.Arbitrary<Demand> = fc
  .record({
    need: fc.integer({ min: 1, max: 12 }),
    more: fc.integer({ min: 0, max: 12 }),
    multiple: fc.constantFrom(1, 1, 2, 3),
    memory: fc.constantFrom(
      [],
      [{ ranks: 1, bytes: 24 * GIB }],
      [
        { ranks: 1, bytes: 60 * GIB },
        { ranks: 4, bytes: 15 * GIB },
      ],
    ),
  })
  .map(({ need, more, multiple, memory }) => ({
    need,
    want: Math.ceil((need + more) / multiple) * multiple,
    multiple,
    memory,
  }));

const waiting = fc.uniqueArray(
  fc.record({
    id: fc.integer({ min: 0, max: 999 }).map((number) => `job-${number}`),
    project: fc.constantFrom('p', 'q', 'r'),
    priority: fc.integer({ min: -2, max: 2 }),
    queued_at: fc.integer({ min: 0, max: 300 }).map((seconds) => NOW - seconds * 1000),
    demand: demands,
    avoid: fc.constantFrom<WaitingJob['avoid']>([], [], [['worker-1', 'worker-2']]),
  }),
  { selector: ({ id }) => id, maxLength: 20 },
);

/** Snapshots of pools without running jobs. */
export const emptyPools: fc.Arbitrary<Snapshot> = fc
  .record({ workers, waiting })
  .map((fields) => snapshotOf(fields));
