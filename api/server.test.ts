import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import t from 'tap';
import { type Dataset, type Job, queueName, REDIS_PREFIX, type Worker } from '../contracts/index.js';
import { loadConfig } from '../platform/config/config.js';
import { createLogger } from '../platform/logging/logging.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { S3StandIn } from '../platform/testing/s3-stand-in.js';
import { openJobStore } from '../state/index.js';
import { testWorker } from '../state/testing/workers.js';
import { startApi } from './server.js';
import { smallSpec } from './testing/stack.js';

process.env.AWS_ACCESS_KEY_ID = 'test';
process.env.AWS_SECRET_ACCESS_KEY = 'test';
process.env.AWS_REGION = 'eu-central-1';

t.test('the server: first key, an allocation and its queue entry, a restart, and the shutdown', async (t) => {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  const dataDir = t.testdir({});
  const config = loadConfig({
    ZEROFLEET_PORT: '0',
    ZEROFLEET_DATA_DIR: dataDir,
    ZEROFLEET_LOG_LEVEL: 'silent',
  });
  const start = () =>
    startApi({
      config,
      redisUrl: redis.url,
      objectStoreUrl: pathToFileURL(join(dataDir, 'objects')).href,
      log: createLogger({ level: 'silent', name: 'api' }),
    });

  const first = await start();
  t.match(first.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  t.match(first.firstKey, { isNew: true, secret: /^zf_[\w-]{43}$/, file: join(dataDir, 'api-key') });
  t.equal((await stat(join(dataDir, 'api-key'))).mode & 0o777, 0o600);

  const store = await openJobStore({ url: redis.url });
  t.teardown(() => store.close());
  await store.announceWorker(testWorker('w', 8), 600_000);
  const post = async <T>(base: string, path: string, type: string, body: string) => {
    const headers = { authorization: `Bearer ${first.firstKey.secret}`, 'content-type': type };
    const reply = await fetch(base + path, { method: 'POST', headers, body });
    t.equal(reply.status, 201);
    return (await reply.json()) as T;
  };
  const { id } = await post<Dataset>(first.url, '/v1/datasets?name=x', 'text/plain', 'text '.repeat(100));
  const job = await post<Job>(first.url, '/v1/jobs', 'application/json', JSON.stringify(smallSpec(id)));

  const connection = new Redis({ path: new URL(redis.url).pathname, maxRetriesPerRequest: null });
  const queue = new Queue(queueName('w'), { connection, prefix: REDIS_PREFIX });
  t.teardown(async () => {
    await queue.close();
    connection.disconnect();
  });
  const queued = async (num: number) => {
    let waiting = await queue.getWaiting();
    while (waiting.length < num) {
      await sleep(10);
      waiting = await queue.getWaiting();
    }
    return waiting;
  };
  t.match(await queued(1), [
    { id: `${job.id}-1`, data: { job_id: job.id, attempt: 1, trace: { traceparent: /^00-/ } } },
  ]);
  await first.close();
  await first.close();
  await t.rejects(fetch(`${first.url}/healthz`), 'closed');

  const second = await start();
  t.match(second.firstKey, { isNew: false, secret: first.firstKey.secret });
  const other = await post<Job>(second.url, '/v1/jobs', 'application/json', JSON.stringify(smallSpec(id)));
  // On a slow machine the first job's allocation is revoked and repeated meanwhile.
  for (let count = 1; !(await queued(count)).some(({ data }) => data.job_id === other.id); count += 1);
  await second.close();
});

t.test('a failed start closes what it has opened', async (t) => {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  const config = loadConfig({
    ZEROFLEET_PORT: '0',
    ZEROFLEET_DATA_DIR: t.testdir({}),
    ZEROFLEET_LOG_LEVEL: 'silent',
  });
  const log = createLogger({ level: 'silent', name: 'api' });
  await t.rejects(startApi({ config, redisUrl: redis.url, objectStoreUrl: 'ftp://nowhere', log }), {
    code: 'invalid_configuration',
  });
  const probe = new Redis({ path: new URL(redis.url).pathname });
  // The probe's own connection is the only one left.
  while (
    String(await probe.client('LIST'))
      .trim()
      .split('\n').length > 1
  )
    await sleep(10);
  probe.disconnect();
});

t.test('a configured key is accepted and not stored', async (t) => {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  const dataDir = t.testdir({});
  const api = await startApi({
    config: loadConfig({
      ZEROFLEET_PORT: '0',
      ZEROFLEET_DATA_DIR: dataDir,
      ZEROFLEET_API_KEY: 'a-key-of-my-own-choice',
    }),
    redisUrl: redis.url,
    objectStoreUrl: pathToFileURL(join(dataDir, 'objects')).href,
    log: createLogger({ level: 'silent', name: 'api' }),
  });
  t.teardown(() => api.close());
  const headers = { authorization: 'Bearer a-key-of-my-own-choice' };
  t.equal((await fetch(`${api.url}/v1/jobs`, { headers })).status, 200);
  await t.rejects(stat(join(dataDir, 'api-key')), { code: 'ENOENT' });
});

t.test('an S3 that overwrites objects is reported in the log', async (t) => {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  for (const overwrites of [false, true]) {
    const bucket = new S3StandIn();
    bucket.overwrites = overwrites;
    const door = await bucket.open();
    t.teardown(() => door.close());
    const lines: string[] = [];
    const api = await startApi({
      config: loadConfig({
        ZEROFLEET_PORT: '0',
        ZEROFLEET_DATA_DIR: t.testdir({}),
        ZEROFLEET_S3_ENDPOINT: door.endpoint,
      }),
      redisUrl: redis.url,
      objectStoreUrl: 's3://tests/fleet',
      log: createLogger({
        level: 'error',
        name: 'api',
        destination: { write: (line: string) => void lines.push(line) },
      }),
    });
    // The probe ends before the server does.
    await api.close();
    t.equal(lines.filter((line) => line.includes('overwrites objects')).length, overwrites ? 1 : 0);
  }
});

t.test('the server starts without Redis, tells so, and serves once it answers', async (t) => {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  await redis.kill();
  const api = await startApi({
    config: loadConfig({
      ZEROFLEET_PORT: '0',
      ZEROFLEET_DATA_DIR: t.testdir({}),
      ZEROFLEET_API_KEY: 'a-key-of-my-own-choice',
    }),
    redisUrl: redis.url,
    objectStoreUrl: pathToFileURL(t.testdir({})).href,
    log: createLogger({ level: 'silent', name: 'api' }),
  });
  t.teardown(() => api.close());
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(api.url + path, { headers: { authorization: 'Bearer a-key-of-my-own-choice' }, ...init });
  t.equal((await ask('/healthz')).status, 200);
  t.equal((await ask('/readyz')).status, 503);
  const refused = await ask('/v1/jobs');
  t.equal(refused.status, 503);
  t.match(await refused.json(), { code: 'job_store_unavailable', retryable: true });

  await redis.start();
  while ((await ask('/v1/jobs')).status !== 200) await sleep(50);
  const headers = { authorization: 'Bearer a-key-of-my-own-choice', 'content-type': 'text/plain' };
  const created = await ask('/v1/datasets?name=x', { method: 'POST', headers, body: 'text '.repeat(100) });
  const { id } = (await created.json()) as Dataset;
  const job = await ask('/v1/jobs', {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(smallSpec(id)),
  });
  t.equal(job.status, 201);
  // The scheduler has started, too: it gives the job to a worker that comes.
  const store = await openJobStore({ url: redis.url });
  t.teardown(() => store.close());
  await store.announceWorker(testWorker('w', 8), 600_000);
  const workers = async () => ((await (await ask('/v1/workers')).json()) as { data: Worker[] }).data;
  while ((await workers())[0]?.used_slots === 0) await sleep(50);
});

t.test('a server ends while Redis is away', async (t) => {
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  const dataDir = t.testdir({});
  const api = await startApi({
    config: loadConfig({ ZEROFLEET_PORT: '0', ZEROFLEET_DATA_DIR: dataDir, ZEROFLEET_LOG_LEVEL: 'silent' }),
    redisUrl: redis.url,
    objectStoreUrl: pathToFileURL(join(dataDir, 'objects')).href,
    log: createLogger({ level: 'silent', name: 'api' }),
  });
  // By then all parts wait for commands, and then for another connection.
  await sleep(1_000);
  await redis.kill();
  await sleep(1_000);
  await api.close();
  await t.rejects(fetch(`${api.url}/healthz`), 'closed');
});
