/**
 * API throughput: `npm run bench -- api --connections 32 --seconds 5 --rounds 3 --watchers 1000`. Redis syncs every
 * write. Measurements with a baseline alternate with it after one uncounted round of each; figures are medians. Output,
 * one line each:
 * - `get`: requests/s and latency of GET /v1/jobs/{id}, compared with a bare Fastify route that returns the same body;
 * - `list`: GET /v1/jobs?limit=20;
 * - `post`: POST /v1/jobs, compared with a bare BullMQ `add` of a job's queue entry in the client's own process;
 * - `post_http`: the same requests, compared with a bare Fastify route that calls such an `add`;
 * - `watch`: messages/s received by the streams of one job, and their latency;
 * - `start`: from POST until an idle worker has claimed the job, and until its ranks run.
 */
import { Queue } from 'bullmq';
import type { Job } from '../contracts/index.js';
import { connectRedis, disconnectRedis } from '../platform/redis/connect.js';
import { type ApiStack, startApiStack, startBareAdd, startBareServer } from './http/api-stack.js';
import { ask, latencyOf, measureCalls, measureLoad } from './http/load.js';
import { measurePaired } from './http/paired.js';
import { benchOptions, count } from './options.js';
import { report } from './report.js';
import { openWatchers } from './watchers.js';

const { connections, seconds, rounds, watchers, starts } = benchOptions({
  connections: count(32),
  seconds: count(5),
  rounds: count(3),
  watchers: count(1000),
  starts: count(20),
});

const EVENT_TYPE = 'benchmark';
const EVENTS = 50;
const EVENT_INTERVAL_MS = 100;
const POLL_MS = 2;
/** Requested in turn. */
const JOBS = 100;
const TEXT = 'to be or not to be, that is the question. '.repeat(100);
const json = { 'content-type': 'application/json' };
const pace = { connections, seconds };

async function postJson<T>(stack: ApiStack, path: string, body: string, type = json): Promise<T> {
  const headers = { ...stack.headers, ...type };
  const { status, text } = await ask(`${stack.url}${path}`, { method: 'POST', headers }, body);
  if (status >= 300) throw new Error(`${path} was answered with ${status}: ${text}`);
  return JSON.parse(text) as T;
}

async function measureReads(stack: ApiStack, jobs: readonly Job[]): Promise<void> {
  const { headers } = stack;
  const bare = await startBareServer(jobs[0] as Job);
  const one = { method: 'GET', ...pace } as const;
  const urls = jobs.map(({ id }) => `${stack.url}/v1/jobs/${id}`);
  const get = await measurePaired(
    rounds,
    () => measureLoad({ ...one, urls, headers }),
    () => measureLoad({ ...one, urls: [bare.url], headers }),
  );
  await bare.close();
  report('api', { what: 'get', ...pace, rounds, ...get });
  const list = await measureLoad({ ...one, urls: [`${stack.url}/v1/jobs?limit=20`], headers });
  report('api', { what: 'list', ...pace, ...list });
}

async function measurePosts(stack: ApiStack, spec: string): Promise<void> {
  const connection = await connectRedis(stack.redis_url, 'commands');
  const queue = new Queue('bare', { connection: connection as never, prefix: '{bare}' });
  let added = 0;
  const add = () =>
    queue.add('attempt', { job_id: `job_${added}`, attempt: 1 }, { jobId: `bare-${added++}-1` });
  const headers = { ...stack.headers, ...json };
  const load = { method: 'POST', headers, body: spec, ...pace } as const;
  const post = () => measureLoad({ ...load, urls: [`${stack.url}/v1/jobs`] });
  const besideAdd = await measurePaired(rounds, post, () => measureCalls(add, pace));
  await queue.obliterate({ force: true });
  await queue.close();
  await disconnectRedis(connection);
  report('api', { what: 'post', ...pace, rounds, ...besideAdd });
  const bare = await startBareAdd(stack.redis_url);
  const besideHttp = await measurePaired(rounds, post, () => measureLoad({ ...load, urls: [bare.url] }));
  await bare.close();
  report('api', { what: 'post_http', ...pace, rounds, ...besideHttp });
}

async function measureWatching(stack: ApiStack, job: Job): Promise<void> {
  const claim = await stack.store.claimAttempt(job.id, job.attempt, 'benchmark', 600_000);
  if (!claim.granted) throw new Error(`the job was not claimed: ${claim.code}`);
  const url = `${stack.url}/v1/jobs/${job.id}/stream`;
  const streams = await openWatchers(url, stack.headers, { count: watchers, event_type: EVENT_TYPE });
  const began = performance.now();
  for (let sent = 0; sent < EVENTS; sent++) {
    await stack.store.appendEvent(job.id, claim.execution, { type: EVENT_TYPE });
    await new Promise((resolve) => setTimeout(resolve, EVENT_INTERVAL_MS));
  }
  await streams.received(EVENTS);
  const took = (performance.now() - began) / 1000;
  const messages = streams.latencies.length;
  streams.close();
  report('api', {
    what: 'watch',
    watchers,
    events: EVENTS,
    messages,
    messages_per_second: Math.round(messages / took),
    ...latencyOf(streams.latencies),
  });
}

async function measureStarts(stack: ApiStack, spec: string): Promise<void> {
  await stack.startWorker();
  const claimed: number[] = [];
  const ran: number[] = [];
  for (let start = 0; start < starts; start++) {
    const began = Date.now();
    const { id } = await postJson<Job>(stack, '/v1/jobs', spec);
    const job = await untilEnd(stack, id);
    const at = (state: string) => job.state_history.find((entry) => entry.state === state)?.at;
    claimed.push(Date.parse(at('provisioning') ?? '') - began);
    ran.push(Date.parse(at('running') ?? '') - began);
  }
  report('api', {
    what: 'start',
    starts,
    claimed: latencyOf(claimed),
    running: latencyOf(ran),
  });
}

async function untilEnd(stack: ApiStack, id: string): Promise<Job> {
  for (;;) {
    const job = await stack.store.getJob(id);
    if (job?.state === 'succeeded') return job;
    if (job === null || job.state === 'failed') throw new Error(`the job failed: ${job?.failure?.message}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

const stack = await startApiStack();
try {
  const dataset = await postJson<{ id: string }>(stack, '/v1/datasets?name=bench&format=text', TEXT, {
    'content-type': 'text/plain',
  });
  const spec = {
    model: { preset: 'llama-tiny' },
    data: { dataset: dataset.id, tokenizer: 'bytes' },
    train: { steps: 1, sequence_length: 16, global_batch_size: 1, micro_batch_size: 1 },
    resources: { ranks: { min: 1, max: 1 } },
  };
  const body = JSON.stringify(spec);
  await measureStarts(stack, body);
  const idle = JSON.stringify({ ...spec, resources: { pool: 'idle' } });
  const jobs: Job[] = [];
  for (let made = 0; made < JOBS; made++) jobs.push(await postJson<Job>(stack, '/v1/jobs', idle));
  await measureReads(stack, jobs);
  await measureWatching(stack, jobs[0] as Job);
  await measurePosts(stack, idle);
} finally {
  await stack.close();
}
