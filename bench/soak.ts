/**
 * Leaks after many small jobs: `npm run bench -- soak --jobs 20000 --workers 20 --attempts 10 --marks 10`. An API
 * server in its own process accepts the jobs over HTTP, its scheduler places them, and simulated workers write to the
 * job store like agents (bench/soak/simulated-worker.ts). Each simulated worker leaves after a number of attempts,
 * every fourth as if it was killed, and is replaced. One job in eight runs two attempts, one in 25 is cancelled. At the
 * end all jobs are deleted.
 *
 * Output: a line per mark with Redis' memory beyond that of an empty store, its keys and connections, and the API
 * server's memory. `ended`: after the last worker has left; `deleted`: without any job. These two list the keys by
 * family, with their bytes. It fails if more memory is used than docs/faults.md states, or if keys of a worker or, at
 * the end, of a job are left.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Job } from '../contracts/index.js';
import { connectRedis, disconnectRedis } from '../platform/redis/connect.js';
import { type ApiStack, startApiStack } from './http/api-stack.js';
import { ask } from './http/load.js';
import { memoryOf } from './memory/process-memory.js';
import { benchOptions, count } from './options.js';
import { report } from './report.js';
import { keyFamilies, usedMemory } from './soak/key-families.js';
import { SimulatedWorker } from './soak/simulated-worker.js';

const { jobs, workers, attempts, marks, connections } = benchOptions({
  jobs: count(20_000),
  workers: count(20),
  attempts: count(10),
  marks: count(10),
  connections: count(8),
});

const SLOTS = 2;
const TEXT = 'to be or not to be, that is the question. '.repeat(100);
const CANCELLED_EVERY = 25;
const KILLED_EVERY = 4;
const POLL_MS = 50;

/** Redis memory limit: a constant for scripts, and per job the value in docs/faults.md. */
const REDIS_FIXED_BYTES = 5e6;
const REDIS_BYTES_PER_JOB = 36e3;
/** Memory limit of the API server. */
const API_BYTES = 400e6;

class Soak {
  private created = 0;
  private ended = 0;
  private hired = 0;
  private left = 0;
  private readonly ids: string[] = [];
  private readonly workers = new Set<SimulatedWorker>();

  private constructor(
    private readonly stack: ApiStack,
    private readonly redis: Redis,
    private readonly emptyBytes: number,
    private readonly spec: string,
  ) {}

  static async open(stack: ApiStack): Promise<Soak> {
    const redis = await connectRedis(stack.redis_url, 'commands');
    const emptyBytes = await usedMemory(redis);
    const text = { ...stack.headers, 'content-type': 'text/plain' };
    const url = `${stack.url}/v1/datasets?name=soak&format=text`;
    const dataset = JSON.parse((await ask(url, { method: 'POST', headers: text }, TEXT)).text);
    const spec = {
      model: { preset: 'llama-tiny' },
      data: { dataset: dataset.id, tokenizer: 'bytes' },
      train: { steps: 20, sequence_length: 16, global_batch_size: 1, micro_batch_size: 1 },
      checkpoint: { every_steps: 10, keep: { last: 1 } },
      resources: { ranks: { min: 1, max: 1 } },
    };
    return new Soak(stack, redis, emptyBytes, JSON.stringify(spec));
  }

  async run(): Promise<void> {
    await this.tell('begin');
    const ending = new AbortController();
    const { signal } = ending;
    const working = Array.from({ length: workers }, () => this.keepWorker(signal));
    const creating = this.atOnce(() => (this.created < jobs ? this.createJob(this.created++) : null));
    await Promise.all([creating, this.untilAllEnded()]);
    ending.abort();
    for (const worker of this.workers) worker.stop();
    await Promise.all(working);
    await this.untilForgotten();
    const ended = await keyFamilies(this.redis);
    requireNone(ended, /worker|zf}:pool/);
    await this.tell('ended', ended);
    await this.atOnce(() => this.delete(this.ids.pop()));
    const deleted = await keyFamilies(this.redis);
    await this.tell('deleted', deleted);
    requireNone(deleted, /job:|:checkpoint|jobs:/);
  }

  async close(): Promise<void> {
    await disconnectRedis(this.redis);
  }

  /** Reports at each mark. */
  private async untilAllEnded(): Promise<void> {
    for (let mark = 1; this.ended < jobs; await sleep(POLL_MS)) {
      const { succeeded, cancelled, failed } = (await this.stack.store.getUse('default')).jobs;
      this.ended = succeeded + cancelled + failed;
      if (mark === marks || this.ended < (jobs * mark) / marks) continue;
      await this.tell('mark');
      mark += 1;
    }
  }

  /** Calls `next` concurrently until it returns null. */
  private async atOnce(next: () => Promise<unknown> | null): Promise<void> {
    const lane = async () => {
      for (let call = next(); call !== null; call = next()) await call;
    };
    await Promise.all(Array.from({ length: connections }, lane));
  }

  private async keepWorker(signal: AbortSignal): Promise<void> {
    const { store, redis_url } = this.stack;
    while (!signal.aborted) {
      const number = this.hired++;
      const worker = await SimulatedWorker.start({
        id: `simulated-worker-${number}`,
        slots: SLOTS,
        attempts,
        killed: number % KILLED_EVERY === KILLED_EVERY - 1,
        store,
        redis_url,
      });
      this.workers.add(worker);
      await worker.gone;
      this.left += 1;
      this.workers.delete(worker);
    }
  }

  /** The number of waiting jobs is bounded. */
  private async createJob(number: number): Promise<void> {
    while (number - this.ended > 4 * workers * SLOTS) await sleep(POLL_MS);
    const job = await this.call<Job>('POST', '/v1/jobs', this.spec);
    this.ids.push(job.id);
    if (number % CANCELLED_EVERY !== 0) return;
    // It may have ended already.
    await this.ask('POST', `/v1/jobs/${job.id}/cancel`);
  }

  private delete(id: string | undefined): Promise<unknown> | null {
    return id === undefined ? null : this.call('DELETE', `/v1/jobs/${id}?artifacts=true`);
  }

  private ask(method: string, path: string, body?: string) {
    const ofBody = { 'content-type': 'application/json', 'idempotency-key': randomUUID() };
    const headers = { ...this.stack.headers, ...(body !== undefined && ofBody) };
    return ask(`${this.stack.url}${path}`, { method, headers }, body);
  }

  private async call<T>(method: string, path: string, body?: string): Promise<T> {
    const { status, text } = await this.ask(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path} was answered with ${status}: ${text}`);
    return (text === '' ? null : JSON.parse(text)) as T;
  }

  /** Waits until the scheduler has removed the killed workers, and with them the pool. */
  private async untilForgotten(): Promise<void> {
    const { store } = this.stack;
    while ((await store.schedulerPools()).length + (await store.removedWorkers()).length > 0)
      await sleep(POLL_MS);
  }

  private async tell(phase: string, families?: object): Promise<void> {
    const redisBytes = (await usedMemory(this.redis)) - this.emptyBytes;
    const clients = /connected_clients:(\d+)/.exec(await this.redis.info('clients'))?.[1];
    const api = await memoryOf(this.stack.api_pid);
    report('soak', {
      what: phase,
      jobs: this.ended,
      workers_left: this.left,
      redis_bytes: redisBytes,
      redis_bytes_per_job: this.ended === 0 ? null : Math.round(redisBytes / this.ended),
      redis_keys: await this.redis.dbsize(),
      redis_connections: Number(clients),
      api,
      ...(families && { families }),
    });
    requireAtMost('Redis', redisBytes, REDIS_FIXED_BYTES + REDIS_BYTES_PER_JOB * this.created);
    requireAtMost('the API server', api.peak_rss_bytes, API_BYTES);
  }
}

function requireAtMost(who: string, bytes: number, most: number): void {
  if (bytes > most) throw new Error(`${who} uses ${bytes} bytes and may use ${most}`);
}

function requireNone(families: object, pattern: RegExp): void {
  const left = Object.keys(families).filter((name) => pattern.test(name));
  if (left.length > 0) throw new Error(`keys are left: ${left.join(', ')}`);
}

const stack = await startApiStack();
try {
  const soak = await Soak.open(stack);
  await soak.run();
  await soak.close();
} finally {
  await stack.close();
}
