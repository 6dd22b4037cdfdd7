import { type ConnectionOptions, Queue, type Job as QueueJob, Worker } from 'bullmq';
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
import { SAMPLE_TASK } from '../../platform/testing/sample-task.js';
import type { SampleCall } from '../services.js';
import { SampleQueue } from './sample-queue.js';

const payload = (prompt = 'to'): SamplePayload => ({
  source: { job_id: 'job_1', checkpoint: { id: 'ckpt_1', prefix: 'jobs/job_1/checkpoints/1' } },
  request: { ...SAMPLE_TASK, prompt },
  stream: true,
  // Any value: only the worker reads it.
  expires_at: 0,
});

const replyOf = (text: string): SampleReply => ({
  ok: true,
  sample: {
    prompt: 'p',
    choices: [{ index: 0, text, finish_reason: 'stop', logprobs: [] }],
    usage: { prompt_tokens: 1, cached_tokens: 0, completion_tokens: 1 },
  },
});
const call = (more: Partial<SampleCall> = {}): SampleCall => ({
  timeout_ms: 60_000,
  loading_ms: 60_000,
  signal: new AbortController().signal,
  ...more,
});

t.test('samples through a queue', async (t) => {
  const redis = await startTestRedis();
  const bullmq = {
    connection: redisOptions(redis.url, 'queue') as ConnectionOptions,
    prefix: REDIS_PREFIX,
  };
  const abandoned: string[] = [];
  const store = { abandonSample: async (entry: string) => void abandoned.push(entry) };
  const samples = new SampleQueue(redis.url, store, createLogger({ level: 'silent', name: 'test' }));
  t.teardown(async () => {
    await samples.close();
    await redis.stop();
  });
  const serve = (pool: string, answer: (job: QueueJob<SamplePayload>) => Promise<SampleReply>) => {
    const worker = new Worker<SamplePayload, SampleReply>(sampleQueueName(pool), answer, {
      ...bullmq,
      concurrency: 8,
    });
    t.teardown(() => worker.close());
  };

  t.test('without a worker the wait times out, and no entry is left for a later worker', async (t) => {
    await t.rejects(samples.sample('empty', payload(), call({ timeout_ms: 300 })), {
      code: 'sample_timeout',
    });
    const queue = new Queue(sampleQueueName('empty'), bullmq);
    t.equal(await queue.count(), 0);
    await queue.close();
  });

  t.test('every caller gets the deltas and the answer to its own request', async (t) => {
    const told = new Map<string, string>();
    serve('default', async (job) => {
      const { prompt = '' } = job.data.request;
      await job.updateProgress({ state: 'answering' });
      for (const [at, text] of ['af', 'ter'].entries())
        await job.updateProgress({
          deltas: [{ index: 0, text_at: 2 * at, text: text + prompt, logprobs_at: 0, logprobs: [] }],
        });
      return replyOf(`after ${prompt}`);
    });
    const prompts = ['one', 'two', 'three'];
    const ask = (prompt: string) =>
      samples.sample(
        'default',
        payload(prompt),
        call({
          onDeltas: (deltas) =>
            told.set(prompt, (told.get(prompt) ?? '') + deltas.map(({ text }) => text).join('')),
        }),
      );
    t.same(
      await Promise.all(prompts.map(ask)),
      prompts.map((prompt) => replyOf(`after ${prompt}`)),
    );
    t.same([...told].sort(), prompts.map((prompt) => [prompt, `af${prompt}ter${prompt}`]).sort());
  });

  t.test('an answer that arrives while its entry is read', async (t) => {
    serve('short', async (job) => replyOf(job.data.request.prompt ?? ''));
    // Entries are read every millisecond, so that many are read between the end of the work and its event.
    const ask = (prompt: string) => samples.sample('short', payload(prompt), call({ loading_ms: 1 }));
    const prompts = Array.from({ length: 400 }, (_, i) => `${i}`);
    t.same(await Promise.all(prompts.map(ask)), prompts.map(replyOf));
  });

  t.test('a model that loads for too long', async (t) => {
    serve('slow', async (job) => {
      await job.updateProgress({ state: 'loading' });
      await job.updateProgress({ state: 'loading' });
      return new Promise<SampleReply>((resolve) => setTimeout(resolve, 3_000, replyOf('late')));
    });
    await t.rejects(samples.sample('slow', payload(), call({ loading_ms: 300 })), { code: 'model_loading' });
  });

  t.test('a caller that leaves', async (t) => {
    const left = new AbortController();
    const began = new Promise<void>((resolve) => {
      serve('left', async (job) => {
        await job.updateProgress({ state: 'answering' });
        resolve();
        return new Promise<SampleReply>((later) => setTimeout(later, 3_000, replyOf('late')));
      });
    });
    const count = abandoned.length;
    const waiting = samples.sample('left', payload(), call({ signal: left.signal }));
    await began;
    left.abort(new Error('gone'));
    await t.rejects(waiting, { message: 'gone' });
    t.equal(abandoned.length, count + 1, 'the worker is told');
  });
});
