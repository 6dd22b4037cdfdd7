/**
 * Cost of many waiting jobs: `npm run bench -- jobs --jobs 10000 --connections 32`. Creates, lists page by page and
 * cancels all of them. One line for each of the three with requests/s, the memory of the API server's process (resident
 * set, peak) and Redis' used memory.
 */
import type { Job, Page } from '../contracts/index.js';
import { connectRedis, disconnectRedis } from '../platform/redis/connect.js';
import { type ApiStack, startApiStack } from './http/api-stack.js';
import { ask, latencyOf } from './http/load.js';
import { memoryOf } from './memory/process-memory.js';
import { benchOptions, count } from './options.js';
import { report } from './report.js';

const { jobs, connections } = benchOptions({ jobs: count(10_000), connections: count(32) });

const PAGE = 100;
const TEXT = 'to be or not to be, that is the question. '.repeat(100);

async function call<T>(
  stack: ApiStack,
  method: string,
  path: string,
  body?: string,
  type = 'application/json',
) {
  const headers = { ...stack.headers, ...(body !== undefined && { 'content-type': type }) };
  const { status, text } = await ask(`${stack.url}${path}`, { method, headers }, body);
  if (status >= 300) throw new Error(`${method} ${path} was answered with ${status}: ${text}`);
  return JSON.parse(text) as T;
}

async function redisMemory(stack: ApiStack): Promise<number> {
  const redis = await connectRedis(stack.redis_url, 'commands');
  const info = await redis.info('memory');
  await disconnectRedis(redis);
  return Number(/used_memory:(\d+)/.exec(info)?.[1]);
}

/** Sends a request for each of `items`, `connections` at once. */
async function timed<T>(items: readonly T[], ask: (item: T) => Promise<unknown>) {
  const latencies: number[] = [];
  const left = [...items].reverse();
  const began = performance.now();
  const lane = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) {
      const sent = performance.now();
      await ask(item);
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: connections }, lane));
  const seconds = (performance.now() - began) / 1000;
  return { requests: items.length, per_second: Math.round(items.length / seconds), ...latencyOf(latencies) };
}

async function allIds(stack: ApiStack): Promise<string[]> {
  const ids: string[] = [];
  let after: string | null = null;
  do {
    const cursor: string = after === null ? '' : `&after=${after}`;
    const page: Page<Job> = await call(stack, 'GET', `/v1/jobs?limit=${PAGE}${cursor}`);
    ids.push(...page.data.map(({ id }) => id));
    after = page.next_cursor;
  } while (after !== null);
  return ids;
}

const stack = await startApiStack();
try {
  const dataset = await call<{ id: string }>(
    stack,
    'POST',
    '/v1/datasets?name=bench&format=text',
    TEXT,
    'text/plain',
  );
  const spec = JSON.stringify({
    model: { preset: 'llama-tiny' },
    data: { dataset: dataset.id, tokenizer: 'bytes' },
    train: { steps: 1, sequence_length: 16, global_batch_size: 1, micro_batch_size: 1 },
    resources: { pool: 'idle', ranks: { min: 1, max: 1 } },
  });
  const emptyRedis = await redisMemory(stack);
  const tell = async (measure: string, result: object) => {
    const redisBytes = (await redisMemory(stack)) - emptyRedis;
    const memory = {
      ...(await memoryOf(stack.api_pid)),
      redis_bytes: redisBytes,
      redis_bytes_per_job: Math.round(redisBytes / jobs),
    };
    report('jobs', { what: measure, jobs, connections, ...result, ...memory });
  };
  await tell('before', {});
  const numbers = Array.from({ length: jobs }, (_, number) => number);
  await tell('create', await timed(numbers, () => call(stack, 'POST', '/v1/jobs', spec)));
  const began = performance.now();
  const ids = await allIds(stack);
  const took = (performance.now() - began) / 1000;
  if (new Set(ids).size !== jobs) throw new Error(`${new Set(ids).size} of ${jobs} jobs are in the list`);
  await tell('list', { pages: Math.ceil(jobs / PAGE), pages_per_second: Math.round(jobs / PAGE / took) });
  await tell('cancel', await timed(ids, (id) => call(stack, 'POST', `/v1/jobs/${id}/cancel`)));
  const left = await call<Page<Job>>(stack, 'GET', '/v1/jobs?state=queued');
  if (left.data.length > 0) throw new Error('a job is still queued');
} finally {
  await stack.close();
}
