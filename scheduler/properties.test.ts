import fc from 'fast-check';
import t from 'tap';
import { leastRanks } from './demand.js';
import { countRanks } from './order.js';
import { HOLD_MS, place } from './place.js';
import { Slots } from './slots.js';
import { demandOf, emptyPools, MINUTE, NOW, workerOf } from './testing/pool.js';
import { World } from './testing/world.js';
import type { Snapshot, Start } from './types.js';

const RUNS = { numRuns: 500 };

function reversed({ workers, running, waiting, ...rest }: Snapshot): Snapshot {
  const back = <T>(list: readonly T[]): T[] => [...list].reverse();
  return { ...rest, workers: back(workers), running: back(running), waiting: back(waiting) };
}

/**
 * Checks that a start uses schedulable workers of its group with enough memory, and an allowed number of
 * ranks.
 */
function isSound({ waiting, workers }: Snapshot, { job_id, group, placements }: Start): boolean {
  const demand = waiting.find(({ id }) => id === job_id)?.demand ?? demandOf(0);
  const all = countRanks(placements);
  const onWorkers = placements.every(({ worker_id, ranks }) => {
    const worker = workers.find(({ id }) => id === worker_id);
    const bytes = worker?.gpu_bytes ?? Number.POSITIVE_INFINITY;
    return ranks >= 1 && worker?.group === group && worker.schedulable && leastRanks(demand, bytes) <= all;
  });
  return onWorkers && all >= demand.need && all <= demand.want && all % demand.multiple === 0;
}

t.test(
  'no slot is allocated twice, and each job gets an allowed number of ranks in one group, or none',
  async () => {
    fc.assert(
      fc.property(emptyPools, (snapshot) => {
        const { starts, waiting } = place(snapshot);
        const used = new Map<string, number>();
        for (const { worker_id, ranks } of starts.flatMap(({ placements }) => placements))
          used.set(worker_id, (used.get(worker_id) ?? 0) + ranks);
        const fits = snapshot.workers.every(({ id, slots }) => (used.get(id) ?? 0) <= slots);
        const all = starts.length + waiting.size === snapshot.waiting.length;
        return fits && all && starts.every((start) => isSound(snapshot, start));
      }),
      RUNS,
    );
  },
);

t.test('the order of the lists does not matter', async (t) => {
  fc.assert(
    fc.property(emptyPools, (snapshot) => {
      t.same(place(reversed(snapshot)), place(snapshot));
    }),
    { numRuns: 200 },
  );
});

t.test('a job that fits beside the started ones starts at once', async () => {
  fc.assert(
    fc.property(emptyPools, (snapshot) => {
      const young = snapshot.waiting.map((job) => ({ ...job, queued_at: snapshot.now }));
      const { starts, waiting } = place({ ...snapshot, waiting: young });
      const slots = new Slots(snapshot.workers, starts);
      return young.every(
        ({ id, demand, avoid }) =>
          !waiting.has(id) || slots.start(demand, slots.groupsFor(demand, avoid), avoid) === null,
      );
    }),
    RUNS,
  );
});

t.test('projects of equal priority get equal shares within one gang, in any order of queueing', async (t) => {
  const cases = fc.record({
    gang: fc.constantFrom(1, 2, 4),
    projects: fc.integer({ min: 2, max: 4 }),
    minutes: fc.array(fc.integer({ min: 0, max: 120 }), { minLength: 4, maxLength: 4 }),
  });
  fc.assert(
    fc.property(cases, ({ gang, projects, minutes }) => {
      const world = new World([0, 1, 2, 3].map((number) => workerOf(`worker-${number}`)));
      for (let project = 0; project < projects; project += 1) {
        for (let index = 0; index < 64; index += 1)
          world.queue({
            id: `job-${project}-${index}`,
            project: `project-${project}`,
            priority: 0,
            queued_at: NOW - (minutes[project] ?? 0) * MINUTE,
            demand: demandOf(gang),
            runs_ms: (1 + ((index * 7) % 5)) * MINUTE,
          });
      }
      world.step(0);
      for (let step = 0; step < 5; step += 1) world.step(MINUTE);
      const usage = Object.values(world.usage());
      t.equal(usage.length, projects);
      t.ok(Math.max(...usage) - Math.min(...usage) <= gang, usage.join(' '));
    }),
    { numRuns: 50 },
  );
});

/**
 * Bound in the documentation: a job whose priority is n lower precedes the jobs of other projects after n + 1 minutes,
 * and slots are held for it. At most one job of each other project still precedes it, and each of those has to end.
 */
function waitBound(
  priority: number,
  others: { priority: number; projects: number; runs_ms: number },
): number {
  const minutes = Math.max(0, others.priority - priority) + 1;
  return HOLD_MS + minutes * MINUTE + (others.projects + 1) * others.runs_ms;
}

t.test('a job that fits alone does not starve, whatever others queue', async () => {
  const STEP_MS = 10_000;
  const cases = fc.record({
    need: fc.integer({ min: 1, max: 16 }),
    priority: fc.integer({ min: -5, max: 0 }),
    projects: fc.integer({ min: 1, max: 4 }),
    sizes: fc.array(fc.integer({ min: 1, max: 16 }), { minLength: 1, maxLength: 5 }),
    runs: fc.integer({ min: 1, max: 10 }),
    elsewhere: fc.boolean(),
  });
  fc.assert(
    fc.property(cases, ({ need, priority, projects, sizes, runs, elsewhere }) => {
      const near = [workerOf('worker-0'), workerOf('worker-1')];
      const far = [workerOf('worker-2', { group: 'b', slots: 2 })];
      const world = new World([...near, ...far]);
      const runsMs = runs * MINUTE;
      world.queue({
        id: 'victim',
        project: 'v',
        priority,
        queued_at: NOW,
        demand: demandOf(need),
        runs_ms: runsMs,
      });
      const bound = waitBound(priority, { priority: 0, projects, runs_ms: runsMs });
      for (let count = 0; !world.began.has('victim'); count += 1) {
        if (world.now - NOW > bound + STEP_MS) throw new Error(`it has waited for more than ${bound} ms`);
        for (let project = 0; project < projects; project += 1)
          world.queue({
            id: `other-${project}-${count}`,
            project: `other-${project}`,
            priority: 0,
            queued_at: world.now,
            demand: demandOf(sizes[count % sizes.length] ?? 1),
            runs_ms: runsMs,
          });
        // Jobs of its own project that start in another group do not set it back.
        if (elsewhere)
          world.queue({
            id: `own-${count}`,
            project: 'v',
            priority,
            queued_at: world.now,
            demand: demandOf(1),
            runs_ms: STEP_MS,
          });
        world.step(STEP_MS);
      }
    }),
    {
      numRuns: 60,
      // Jobs of one project that start in one of their two groups are set back in both.
      examples: [
        [{ need: 3, priority: -2, projects: 2, sizes: [15, 2, 1, 1, 1], runs: 5, elsewhere: false }],
      ],
    },
  );
});
