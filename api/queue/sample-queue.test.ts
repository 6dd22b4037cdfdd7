import { type ConnectionOptions, Queue, Worker } from 'bullmq';
import t from 'tap';
import {
  REDIS_PREFIX,
  type SamplePayload,
  type SampleReply,
  sampleQueueName,
} from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { redisOptions } from '../../platform/redis/connect.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { SampleQueue } from './sample-queue.js';

const payload = (prompt = 'to'): SamplePayload => ({
  job_id: 'job_1',
  checkpoint: { id: 'ckpt_1', prefix: 'jobs/job_1/checkpoints/1' },
  request: { prompt, max_tokens: 4, temperature: 0, top_k: 0, top_p: 1, seed: 1, weights: 'trained' },
  // Any value: only the worker reads it.
  expires_at: 0,
});

t.test('samples through a queue', async (t) => {
  const redis = await startTestRedis();
  const bullmq = {
    connection: redisOptions(redis.url, 'queue') as ConnectionOptions,
    prefix: REDIS_PREFIX,
  };
  const samples = new SampleQueue(redis.url, createLogger({ level: 'silent', name: 'test' }));
  t.teardown(async () => {
    await samples.close();
    await redis.stop();
  });

  t.test('without a worker the wait times out, and no entry is left for a later worker', async (t) => {
    await t.rejects(samples.sample('empty', payload(), 300), { code: 'sample_timeout' });
    const queue = new Queue(sampleQueueName('empty'), bullmq);
    t.equal(await queue.count(), 0);
    await queue.close();
  });

  t.test('every caller gets the answer to its own request', async (t) => {
    const worker = new Worker<SamplePayload, SampleReply>(
      sampleQueueName('default'),
      async ({ data: { request } }) => ({
        ok: true,
        sample: { prompt: 'p', completion: `after ${request.prompt}`, num_tokens: request.max_tokens },
      }),
      bullmq,
    );
    t.teardown(() => worker.close());
    const prompts = ['one', 'two', 'three'];
    const replies = await Promise.all(
      prompts.map((prompt) => samples.sample('default', payload(prompt), 30_000)),
    );
    t.same(
      replies,
      prompts.map((prompt) => ({
        ok: true,
        sample: { prompt: 'p', completion: `after ${prompt}`, num_tokens: 4 },
      })),
    );
  });

  t.test('a worker that is too slow', async (t) => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const worker = new Worker<SamplePayload, SampleReply>(
      sampleQueueName('slow'),
      async () => {
        await ended;
        return { ok: false, error: { code: 'internal_error', message: 'too late' } };
      },
      bullmq,
    );
    t.teardown(() => worker.close());
    await t.rejects(samples.sample('slow', payload(), 500), {
      code: 'sample_timeout',
      message: /pool slow/,
    });
    end();
  });
});
