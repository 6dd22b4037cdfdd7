/** The API server is killed after it has recorded a job and before the queue has it; the client retries. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import t, { type Test } from 'tap';
import { type Dataset, type Job, queueName, REDIS_PREFIX } from '../../contracts/index.js';
import { programPath } from '../../platform/process/programs.js';
import { startTestRedis, type TestRedis } from '../../platform/testing/redis.js';

const KEY = 'zf_crash_before_queue_0123456789abcdef';
const auth = { authorization: `Bearer ${KEY}` };

interface Programs {
  redis: TestRedis;
  /** Starts a program of dist/. @param flags of Node.js */
  launch(program: string, name: string, flags?: string[]): ChildProcess;
  /** Starts an API server and waits until it is ready. */
  serve(name: string, flags?: string[]): Promise<{ child: ChildProcess; url: string }>;
}

async function programs(t: Test): Promise<Programs> {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  const dir = t.testdir({ objects: {} });
  const launch: Programs['launch'] = (program, name, flags = []) => {
    const env = {
      ...process.env,
      ZEROFLEET_REDIS_URL: redis.url,
      ZEROFLEET_OBJECT_STORE: pathToFileURL(join(dir, 'objects')).href,
      ZEROFLEET_DATA_DIR: join(dir, name),
      ZEROFLEET_API_KEY: KEY,
      ZEROFLEET_PORT: '0',
      ZEROFLEET_SLOTS: '1',
      ZEROFLEET_LOG_LEVEL: 'error',
    };
    const file = programPath(program);
    const child = spawn(process.execPath, [...flags, file], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    t.teardown(async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    });
    return child;
  };
  const serve: Programs['serve'] = async (name, flags = []) => {
    const child = launch('api/main', name, flags);
    for await (const line of createInterface({ input: child.stdout as Readable })) {
      const [ready, url = ''] = line.split(' ');
      if (ready === 'ready') return { child, url };
    }
    throw new Error('the server ended while it started');
  };
  return { redis, launch, serve };
}

async function post(url: string, type: string, body: string, key?: string): Promise<Response> {
  const headers = { ...auth, 'content-type': type, ...(key && { 'idempotency-key': key }) };
  const reply = await fetch(url, { method: 'POST', headers, body });
  return reply;
}

t.test('one job, and it runs once', { timeout: 180_000 }, async (t) => {
  const { redis, launch, serve } = await programs(t);
  launch('worker/agent/main', 'worker');
  const dying = new URL('../support/crash-on-delivery.js', import.meta.url).href;
  const doomed = await serve('first', ['--import', dying]);
  const died = once(doomed.child, 'exit');
  const text = 'to be or not to be, that is the question. '.repeat(50);
  const uploaded = await post(`${doomed.url}/v1/datasets?name=text`, 'text/plain', text);
  const { id: dataset } = (await uploaded.json()) as Dataset;
  const document = JSON.stringify({
    model: { preset: 'llama-tiny' },
    data: { dataset, tokenizer: 'bytes' },
    train: { steps: 1, sequence_length: 16, global_batch_size: 1, micro_batch_size: 1 },
    resources: { ranks: { min: 1, max: 1 } },
  });
  const create = (url: string) => post(`${url}/v1/jobs`, 'application/json', document, 'once');

  // Its answer may or may not arrive before the server dies.
  const answered = (await create(doomed.url)
    .then((reply) => reply.json())
    .catch(() => null)) as Job | null;
  t.same(await died, [null, 'SIGKILL']);

  const { url } = await serve('second');
  const list = async () =>
    ((await (await fetch(`${url}/v1/jobs`, { headers: auth })).json()) as { data: Job[] }).data;
  const [recorded, ...others] = await list();
  t.same(others, []);
  t.ok(recorded, 'the job was recorded before the crash');
  const replies = await Promise.all([create(url), create(url), create(url)]);
  for (const reply of replies) {
    t.equal(reply.status, 201);
    t.equal(reply.headers.get('idempotent-replayed'), 'true');
    t.equal(((await reply.json()) as Job).id, recorded?.id);
  }
  if (answered !== null) t.equal(answered.id, recorded?.id);

  let job = recorded;
  while (job !== undefined && job.state !== 'succeeded' && job.state !== 'failed') {
    await sleep(50);
    [job] = await list();
  }
  t.match(job, { state: 'succeeded', epoch: 1 });
  t.equal((await list()).length, 1);
  const { data: workers } = (await (await fetch(`${url}/v1/workers`, { headers: auth })).json()) as {
    data: { id: string }[];
  };
  const connection = new Redis({ path: new URL(redis.url).pathname, maxRetriesPerRequest: null });
  const queue = new Queue(queueName(workers[0]?.id ?? ''), { connection, prefix: REDIS_PREFIX });
  t.teardown(async () => {
    await queue.close();
    connection.disconnect();
  });
  // A delivered entry leaves the queue when it is done; a duplicate entry would be refused and leave it as well,
  // without an execution.
  while ((await queue.getJobs()).length > 0) await sleep(50);
});
