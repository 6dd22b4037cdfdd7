/**
 * Whatever jobs and workers do, in whatever order: no slot is promised twice, a job gets all that it needs or nothing, nobody
 * takes what somebody before him in the order could have, everybody comes to his turn, and no job has ranks that compute
 * other bits than the rest of them.
 */
import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { Job } from '../../contracts/index.js';
import { TestPool } from '../testing/pools.js';
import { startTestRedis } from '../testing/redis.js';
import type { Place } from './index.js';

const server = await startTestRedis();
t.teardown(() => server.stop());

interface Fleet {
  slots: Readonly<Record<string, number>>;
  /** What decides the bits of each worker's ranks. */
  numerics: Readonly<Record<string, string>>;
}

const ALIKE: Fleet = { slots: { a: 4, b: 2, c: 1 }, numerics: {} };
const TWO_GROUPS: Fleet = {
  slots: { a: 2, b: 2, c: 3, d: 1 },
  numerics: { a: 'cpu-avx2/2', b: 'cpu-avx2/2', c: 'cpu-avx512/2', d: 'cpu-avx512/2' },
};

interface Held {
  job: Job;
  min: number;
  want: number;
  places: Place[];
  epoch: number;
}

interface Waiting {
  job: Job;
  min: number;
  want: number;
  priority: number;
  project: string;
}

/** What should be true, kept beside the store by plain means. */
class Model {
  readonly waiting = new Map<string, Waiting>();
  readonly held = new Map<string, Held & { project: string }>();

  constructor(
    readonly pool: TestPool,
    readonly fleet: Fleet,
    readonly spread: boolean,
  ) {}

  get workers(): string[] {
    return Object.keys(this.fleet.slots);
  }

  slots(worker: string): number {
    return this.fleet.slots[worker] ?? 0;
  }

  free(worker: string): number {
    let free = this.slots(worker);
    for (const { places } of this.held.values())
      for (const { worker_id, slots } of places) if (worker_id === worker) free -= slots;
    return free;
  }

  /** Workers that may have ranks of a job which `worker` leads. */
  around(worker: string): string[] {
    const { numerics } = this.fleet;
    return this.spread ? this.workers.filter((other) => numerics[other] === numerics[worker]) : [worker];
  }

  /** Slots that one job could have at once, of those that `count` says; of a job that `leader` leads, where it is given. */
  reach(leader?: string, count = (worker: string) => this.free(worker)): number {
    const leaders = leader === undefined ? this.workers : [leader];
    return Math.max(
      ...leaders.map((worker) => this.around(worker).reduce((sum, other) => sum + count(other), 0)),
    );
  }

  /** The most slots that one job could have if nothing else ran. */
  get most(): number {
    return this.reach(undefined, (worker) => this.slots(worker));
  }

  /** Those that wait, the first in the order first. */
  async order(): Promise<Waiting[]> {
    const usage = new Map<string, number>();
    for (const { project, places } of this.held.values())
      usage.set(
        project,
        places.reduce((sum, { slots }) => sum + slots, usage.get(project) ?? 0),
      );
    const keyed = await Promise.all(
      [...this.waiting.values()].map(async (waiting) => {
        const since = Number(
          await this.pool.redis.hget(this.pool.key(`job:${waiting.job.id}`), 'queued_since'),
        );
        const level = Math.floor(since / 60_000) - waiting.priority;
        return { waiting, key: [level, usage.get(waiting.project) ?? 0, since] };
      }),
    );
    const compare = (a: (typeof keyed)[number], b: (typeof keyed)[number]) =>
      a.key.map((value, i) => value - (b.key[i] ?? 0)).find((difference) => difference !== 0) ??
      (a.waiting.job.id < b.waiting.job.id ? -1 : 1);
    return keyed.sort(compare).map(({ waiting }) => waiting);
  }
}

interface Step {
  name: string;
  run(model: Model): Promise<void>;
}

function pick<T>(map: ReadonlyMap<string, T>, index: number): T | undefined {
  return [...map.values()][index % Math.max(1, map.size)];
}

async function claim(model: Model, waiting: Waiting, worker: string): Promise<boolean> {
  const { pool, spread } = model;
  const { job, min, want } = waiting;
  const order = await model.order();
  const rank = order.indexOf(waiting);
  const leads = model.free(worker) > 0;
  const reach = model.reach(worker);
  const before = order.slice(0, rank).filter((other) => other.min <= model.reach());
  const result = await pool.claim(job, worker, { spread });
  if (!result.granted) {
    // Those before it that don't fit let it pass: none of them has waited for a minute.
    if (before.length === 0 && leads && min <= reach) throw new Error('refused though it is next and fits');
    return false;
  }
  const ranks = result.places.reduce((sum, { slots }) => sum + slots, 0);
  if (ranks < min || ranks > want) throw new Error(`${ranks} ranks for ${min} to ${want}`);
  if (result.places[0]?.worker_id !== worker) throw new Error('the one that claims is not the first');
  const around = model.around(worker);
  if (!result.places.every(({ worker_id }) => around.includes(worker_id)))
    throw new Error('places on workers that it can not have');
  if (ranks < Math.min(want, reach) && before.length === 0) throw new Error('fewer ranks than were free');
  model.waiting.delete(job.id);
  model.held.set(job.id, { ...waiting, places: result.places, epoch: result.epoch });
  const [first] = before;
  if (first && first.min > model.reach()) throw new Error('it took what the first in the order could have');
  return true;
}

async function finish(model: Model, held: Held, requeue: boolean): Promise<void> {
  const { store } = model.pool;
  const known = model.held.get(held.job.id);
  model.held.delete(held.job.id);
  if (!requeue) {
    await store.finishJob(held.job.id, held.epoch, 'failed');
  } else if (known) {
    await store.releaseAttempt(held.job.id, held.epoch, { to: 'queued' });
    const { job, min, want, project } = known;
    model.waiting.set(job.id, { job, min, want, project, priority: job.spec.priority });
  }
}

/** No worker has promised more than it has, and the store counts as the model does. */
async function check(model: Model): Promise<void> {
  for (const [worker, used] of Object.entries(await model.pool.used())) {
    if (model.free(worker) < 0) throw new Error(`a slot of ${worker} was promised twice`);
    if (used !== model.slots(worker) - model.free(worker)) throw new Error(`${worker} counts ${used} slots`);
  }
}

const index = fc.nat(20);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        fc.integer({ min: 1, max: 5 }),
        fc.nat(3),
        fc.integer({ min: -1, max: 1 }),
        fc.constantFrom('p', 'q'),
      )
      .map(([min, more, priority, project]) => ({
        name: `${project}: ${min} to ${min + more} ranks, priority ${priority}`,
        run: async (model: Model) => {
          const job = await model.pool.job({ min, ranks: min + more, priority, project });
          model.waiting.set(job.id, { job, min, want: min + more, priority, project });
        },
      })),
  },
  {
    weight: 6,
    arbitrary: fc.tuple(index, index).map(([i, who]) => ({
      name: `worker ${who} claims ${i}`,
      run: async (model: Model) => {
        const waiting = pick(model.waiting, i);
        const worker = model.workers[who % model.workers.length];
        if (waiting && worker) await claim(model, waiting, worker);
      },
    })),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(index, fc.boolean()).map(([i, requeue]) => ({
      name: `${i} ends${requeue ? ' and is queued again' : ''}`,
      run: async (model: Model) => {
        const held = pick(model.held, i);
        if (held) await finish(model, held, requeue);
      },
    })),
  },
);

/** Each of `jobs` asks at every worker until it gets its places. Returns how many did. */
async function claimAll(model: Model, jobs: readonly Waiting[]): Promise<number> {
  let began = 0;
  for (const waiting of jobs) {
    for (const who of model.workers) {
      if (await claim(model, waiting, who)) {
        began++;
        break;
      }
    }
  }
  return began;
}

/** Everybody who can run at all comes to his turn, whoever asks when. */
async function drain(model: Model, seed: number): Promise<void> {
  for (let round = seed; ; round++) {
    for (const held of [...model.held.values()]) await finish(model, held, false);
    const possible = [...model.waiting.values()].filter(({ min }) => min <= model.most);
    if (possible.length === 0) return;
    const first = round % possible.length;
    const began = await claimAll(model, [...possible.slice(first), ...possible.slice(0, first)]);
    await check(model);
    if (began === 0) throw new Error('slots are free, jobs wait, and none begins');
  }
}

async function walk(t: Test, fleet: Fleet, spread: boolean): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), index, async (steps, seed) => {
      const pool = await TestPool.open(t, server, fleet.slots, fleet.numerics);
      const model = new Model(pool, fleet, spread);
      for (const { run } of steps) {
        await run(model);
        await check(model);
      }
      await drain(model, seed);
    }),
    { numRuns: 40 },
  );
}

for (const [name, fleet] of Object.entries({ 'of one group': ALIKE, 'of two groups': TWO_GROUPS })) {
  t.test(`on one worker each, ${name}`, async (t) => {
    await walk(t, fleet, false);
    t.pass('hold');
  });

  t.test(`over several workers, ${name}`, async (t) => {
    await walk(t, fleet, true);
    t.pass('hold');
  });
}
