import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, Worker } from 'bullmq';
import t from 'tap';
import {
  type EditPayload,
  type EditReply,
  type ExportPayload,
  type ExportReply,
  exportQueueName,
  REDIS_PREFIX,
} from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { connectRedis, disconnectRedis, redisOptions } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import type { ExportProgress } from '../services.js';
import { ExportQueue } from './export-queue.js';

const payload = (id: string): ExportPayload => ({
  job_id: 'job_1',
  checkpoint: { id, prefix: 'jobs/job_1/checkpoints/1', step: 1 },
  format: 'safetensors',
  dtype: 'bf16',
  weights: 'trained',
  tensorboard: false,
  prefix: 'jobs/job_1/exports/1',
});

t.test('exports through a queue', async (t) => {
  const redis = await startTestRedis();
  const bullmq = {
    connection: redisOptions(redis.url, 'queue') as ConnectionOptions,
    prefix: REDIS_PREFIX,
  };
  const exports = new ExportQueue(redis.url, createLogger({ level: 'silent', name: 'test' }));
  t.teardown(async () => {
    await exports.close();
    await redis.stop();
  });

  t.equal(await exports.progress('default', payload('a')), null);
  const client = await connectRedis(redis.url, 'commands');
  t.strictSame(await client.keys('*'), [], 'a question leaves no key');
  await client.config('SET', 'maxmemory', '1');
  await t.rejects(exports.request('default', payload('a')), { code: 'redis_full' });
  await client.config('SET', 'maxmemory', '0');
  await disconnectRedis(client);
  t.strictSame(await exports.request('default', payload('a')), { state: 'queued' });
  t.strictSame(
    await exports.request('default', payload('a')),
    { state: 'queued' },
    'one entry for two requests',
  );

  const error = { code: 'shard_corrupt', message: 'bytes of chunk 3' };
  const replies: ExportReply[] = [{ error }, { error: null }];
  const done: string[] = [];
  let finished: () => void = () => undefined;
  const next = () =>
    new Promise<void>((resolve) => {
      finished = resolve;
    });
  const first = next();
  const worker = new Worker<ExportPayload, ExportReply>(
    exportQueueName('default'),
    async ({ data }) => {
      t.strictSame(await exports.progress('default', data), { state: 'running' });
      done.push(data.checkpoint.id);
      return replies.shift() ?? { error: null };
    },
    bullmq,
  );
  worker.on('completed', () => finished());
  t.teardown(() => worker.close());
  await first;
  t.strictSame(await exports.progress('default', payload('a')), { state: 'failed', error });
  const second = next();
  t.strictSame(
    await exports.request('default', payload('a')),
    { state: 'queued' },
    'a failed export is retried',
  );
  await second;
  t.equal(
    await exports.progress('default', payload('a')),
    null,
    'a finished export is described by its record',
  );
  t.strictSame(done, ['a', 'a']);
});

t.test('changes of tensors', async (t) => {
  const redis = await startTestRedis();
  const exports = new ExportQueue(redis.url, createLogger({ level: 'silent', name: 'test' }));
  const edit: EditPayload = {
    edit_id: 'e',
    job_id: 'job_1',
    checkpoint: { id: 'a', prefix: 'jobs/job_1/checkpoints/1' },
    tensor: 'w',
    tensor_state: 'master',
    values: { key: 'k', sha256: '0' },
  };
  t.equal(await exports.findEdit('default', 'e'), null);
  t.strictSame(await exports.requestEdit('default', edit), { state: 'queued' });
  t.strictSame(await exports.findEdit('default', 'e'), { payload: edit, progress: { state: 'queued' } });
  const error = { code: 'tensor_invalid', message: 'round the values' };
  const replies: EditReply[] = [{ error }, { error: null, checkpoint_id: 'b' }];
  const worker = new Worker<EditPayload, EditReply>(
    exportQueueName('default'),
    async () => replies.shift() ?? { error },
    { connection: redisOptions(redis.url, 'queue') as ConnectionOptions, prefix: REDIS_PREFIX },
  );
  t.teardown(async () => {
    await worker.close();
    await exports.close();
    await redis.stop();
  });
  const end = async () => {
    for (;;) {
      const found = await exports.findEdit('default', 'e');
      if (found && found.progress.state !== 'queued' && found.progress.state !== 'running')
        return found.progress;
      await sleep(5);
    }
  };
  t.strictSame(await end(), { state: 'failed', error });
  t.strictSame(await exports.requestEdit('default', edit), { state: 'queued' }, 'a failed change is retried');
  const done = { state: 'succeeded', checkpoint_id: 'b' };
  t.strictSame(await end(), done);
  t.strictSame(await exports.requestEdit('default', edit), done, 'a change is made once');
});

t.test("a failed export is retried immediately, independently of the worker's clock", async (t) => {
  const redis = await startTestRedis();
  const exports = new ExportQueue(redis.url, createLogger({ level: 'silent', name: 'test' }));
  const now = Date.now;
  t.teardown(async () => {
    Date.now = now;
    await exports.close();
    await redis.stop();
  });
  const tries: number[] = [];
  const worker = new Worker<ExportPayload, ExportReply>(
    exportQueueName('default'),
    async ({ attemptsMade }) => {
      tries.push(attemptsMade);
      // It fails on a worker whose clock is an hour ahead; a worker with a correct clock takes it next.
      Date.now = attemptsMade === 0 ? () => now() + 3_600_000 : now;
      if (attemptsMade === 0) throw new Error('the object store is unavailable');
      return { error: null };
    },
    {
      connection: redisOptions(redis.url, 'queue') as ConnectionOptions,
      prefix: REDIS_PREFIX,
    },
  );
  worker.on('failed', () => {
    Date.now = now;
  });
  t.teardown(() => worker.close());
  await exports.request('default', payload('a'));
  while (tries.length < 2) await sleep(5);
  t.same(tries, [0, 1]);
});

t.test('exports that end while they are read', async (t) => {
  const redis = await startTestRedis();
  const exports = new ExportQueue(redis.url, createLogger({ level: 'silent', name: 'test' }));
  const worker = new Worker<ExportPayload, ExportReply>(
    exportQueueName('default'),
    async () => ({ error: null }),
    { connection: redisOptions(redis.url, 'queue') as ConnectionOptions, prefix: REDIS_PREFIX },
  );
  t.teardown(async () => {
    await worker.close();
    await exports.close();
    await redis.stop();
  });
  const states = new Set<string>();
  const readToEnd = async (id: string) => {
    let progress: ExportProgress | null = await exports.request('default', payload(id));
    while (progress !== null) {
      states.add(progress.state);
      progress = await exports.progress('default', payload(id));
    }
  };
  await Promise.all(Array.from({ length: 300 }, (_, i) => readToEnd(`${i}`)));
  t.notOk(states.has('failed'));
});
