/**
 * Cost of waiting jobs: `npm run bench -- scheduler --workers 500 --waiting 10000 --projects 20 --seconds 10`. A
 * private Redis has a pool of machines with eight slots, all allocated, and the waiting jobs. The loop decides as in
 * the API.
 *
 * - `idle`: only time passes, and workers send heartbeats.
 * - `churn`: every 20 ms a job ends, and the job that gets its slots is claimed: 50 per second.
 *
 * Prints the CPU seconds of Redis per second (`redis_cpu`) and of this process, which does the work of the scheduler,
 * the workers and the jobs. Also prints the number of decisions, their duration and that of the scripts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Execution } from '../contracts/execution.js';
import { SchedulerLoop } from '../control/scheduling/scheduler-loop.js';
import { createLogger } from '../platform/logging/logging.js';
import { connectRedis, disconnectRedis } from '../platform/redis/connect.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { place } from '../scheduler/place.js';
import { type JobStore, openJobStore } from '../state/index.js';
import { createTestJob } from '../state/testing/jobs.js';
import { decide } from '../state/testing/pools.js';
import { testWorker } from '../state/testing/workers.js';
import { benchOptions, count } from './options.js';
import { median, report } from './report.js';

const options = benchOptions({
  workers: count(500),
  waiting: count(10_000),
  projects: count(20),
  seconds: count(10),
});

const SLOTS = 8;
const LEASE_MS = 3_600_000;
const ANNOUNCED_EVERY_MS = 10_000;
const CHURN_EVERY_MS = 20;
const AT_ONCE = 50;

const server = await startTestRedis();
const store = await openJobStore({ url: server.url });
const redis = await connectRedis(server.url, 'commands');
const log = createLogger({ level: 'warn', name: 'bench' });

const workerIds = Array.from({ length: options.workers }, (_, i) => `worker-${i}`);
const running: { id: string; execution: Execution }[] = [];

async function announceAll(): Promise<void> {
  for (const id of workerIds) await store.announceWorker(testWorker(id, SLOTS), LEASE_MS);
}

/** Jobs of one to eight ranks, round-robin over all projects. */
async function queueJobs(count: number, ranks?: number): Promise<void> {
  let next = 0;
  const one = async () => {
    while (next < count) {
      const i = next++;
      const size = ranks ?? 1 + ((i * 7) % SLOTS);
      await createTestJob(store, {
        project: `project-${i % options.projects}`,
        resources: { ranks: { min: size, preferred: size, max: SLOTS } },
        train: { steps: 100, global_batch_size: 32, micro_batch_size: 4 },
      });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}

/** Claims unclaimed allocations, as the workers do. */
async function claimAll(): Promise<void> {
  const { snapshot } = await store.readSnapshot('default', 0);
  const known = new Set(running.map(({ id }) => id));
  for (const { id, placements } of snapshot.running) {
    if (known.has(id)) continue;
    const attempt = (await store.getJob(id))?.attempt ?? 0;
    const leader = placements[0]?.worker_id ?? '';
    const claim = await store.claimAttempt(id, attempt, leader, LEASE_MS, { allocated: true });
    if (claim.granted) running.push({ id, execution: claim.execution });
  }
}

async function redisSeconds(): Promise<number> {
  const info = await redis.info('cpu');
  const value = (name: string) => Number(new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]);
  return value('used_cpu_user') + value('used_cpu_sys');
}

/** A store that measures decisions: from the snapshot until they are applied. */
function timed(times: number[], reads: number[]): JobStore {
  let began = 0;
  return {
    ...store,
    async readSnapshot(...args) {
      began = performance.now();
      const read = await store.readSnapshot(...args);
      reads.push(performance.now() - began);
      return read;
    },
    async applyDecision(...args) {
      const done = await store.applyDecision(...args);
      times.push(performance.now() - began);
      return done;
    },
  };
}

async function measure(phase: string, work: (signal: AbortSignal) => Promise<number>): Promise<void> {
  const [applied, reads]: [number[], number[]] = [[], []];
  const loop = new SchedulerLoop({
    store: timed(applied, reads),
    removeQueue: async () => undefined,
    onAbandoned: async () => undefined,
    onUnplaceable: async () => undefined,
    log,
  });
  await sleep(2_000);
  applied.length = 0;
  reads.length = 0;
  const ending = new AbortController();
  const [redisBefore, ownBefore, began] = [await redisSeconds(), process.cpuUsage(), performance.now()];
  const working = work(ending.signal);
  await sleep(options.seconds * 1000);
  ending.abort();
  const jobs = await working;
  const seconds = (performance.now() - began) / 1000;
  const own = process.cpuUsage(ownBefore);
  const redisCpu = ((await redisSeconds()) - redisBefore) / seconds;
  await loop.close();
  report('scheduler', {
    phase,
    ...options,
    redis_cpu: rounded(redisCpu),
    process_cpu: rounded((own.user + own.system) / 1e6 / seconds),
    jobs_per_second: rounded(jobs / seconds),
    snapshots_per_second: rounded(reads.length / seconds),
    read_ms: rounded(median(reads)),
    applied: applied.length,
    decision_ms: applied.length === 0 ? null : rounded(median(applied)),
  });
}

const rounded = (value: number) => Number(value.toPrecision(3));

async function idle(signal: AbortSignal): Promise<number> {
  while (!signal.aborted) {
    const began = performance.now();
    await announceAll();
    await sleep(Math.max(0, ANNOUNCED_EVERY_MS - (performance.now() - began)), undefined, { signal }).catch(
      () => undefined,
    );
  }
  return 0;
}

/** Ends jobs and starts others in their place. */
async function churn(signal: AbortSignal): Promise<number> {
  let ended = 0;
  const claiming = (async () => {
    while (!signal.aborted) {
      await claimAll();
      await sleep(100);
    }
  })();
  for (let next = performance.now(); !signal.aborted; next += CHURN_EVERY_MS) {
    const job = running.shift();
    if (job) {
      await store.finishJob(job.id, job.execution, 'failed');
      ended += 1;
    }
    await sleep(Math.max(0, next - performance.now()));
  }
  await claiming;
  return ended;
}

await announceAll();
await queueJobs(options.workers, SLOTS);
await decide(store);
await claimAll();
await queueJobs(options.waiting);
const { snapshot } = await store.readSnapshot('default', 0);
const times = Array.from({ length: 7 }, () => {
  const began = performance.now();
  place(snapshot);
  return performance.now() - began;
});
report('scheduler', { phase: 'place', ...options, place_ms: rounded(median(times)) });
await measure('idle', idle);
await measure('churn', churn);
await store.close();
await disconnectRedis(redis);
await server.stop();
