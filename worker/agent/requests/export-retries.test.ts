/** Tests of exports that fail, and of exports whose workers are lost. */
import { type ConnectionOptions, Queue, QueueEvents, Worker } from 'bullmq';
import t from 'tap';
import {
  type ExportPayload,
  type ExportReply,
  exportQueueName,
  REDIS_PREFIX,
  ZerofleetError,
} from '../../../contracts/index.js';
import { createLogger } from '../../../platform/logging/logging.js';
import { redisOptions } from '../../../platform/redis/connect.js';
import { until } from '../../../platform/testing/waiting.js';
import { Fleet, TEST_TIMING } from '../../testing/fleet.js';
import { MAX_LOST_WORKERS } from '../attempt/failure.js';
import { ExportServer } from './export-server.js';
import type { QueueServerOptions } from './queue-server.js';

const POOL = 'default';
const UNKNOWN: ExportPayload = {
  job_id: 'job_unknown',
  checkpoint: { id: 'ckpt_unknown', prefix: 'jobs/job_unknown/checkpoints/1', step: 1 },
  format: 'safetensors',
  dtype: 'bf16',
  weights: 'trained',
  tensorboard: false,
  prefix: 'jobs/job_unknown/exports/1',
};

t.test('exports that fail', async (t) => {
  const fleet = await Fleet.start();
  t.teardown(() => fleet.close());
  const bullmq = {
    connection: redisOptions(fleet.redis.url, 'queue') as ConnectionOptions,
    prefix: REDIS_PREFIX,
  };
  const queue = new Queue<ExportPayload, ExportReply>(exportQueueName(POOL), bullmq);
  const events = new QueueEvents(exportQueueName(POOL), bullmq);
  await events.waitUntilReady();
  t.teardown(() => Promise.all([queue.close(), events.close()]));

  await t.test('after ten lost workers an export fails with advice', async (t) => {
    const entry = await queue.add('export', UNKNOWN, { attempts: 12 });
    for (let lost = 0; lost <= MAX_LOST_WORKERS; lost += 1) {
      const options = { ...bullmq, lockDuration: 50, stalledInterval: 20, maxStalledCount: 1_000 };
      let took = false;
      const worker = new Worker<ExportPayload, ExportReply>(
        exportQueueName(POOL),
        async () => {
          took = true;
          return new Promise<never>(() => undefined);
        },
        options,
      );
      worker.on('error', () => undefined);
      await until(() => took);
      // The worker ends with its lock held.
      await worker.close(true);
    }
    await fleet.agent(2, { stalled_interval_ms: 20 });
    t.match(await entry.waitUntilFinished(events, 60_000), {
      error: { code: 'workers_lost', message: /^11 workers .* ask for it again/ },
    });
  });

  await t.test('a retryable failure is retried after a backoff', async (t) => {
    let failures = 3;
    const began: number[] = [];
    const holdCheckpoint = async () => {
      began.push(performance.now());
      if (failures-- > 0) throw new ZerofleetError('job_store_unavailable', 'away');
      return true;
    };
    const timing = { ...TEST_TIMING, storage: { attempts: 1, first_delay_ms: 40, max_delay_ms: 40 } };
    const server = new ExportServer({
      store: { ...fleet.store, holdCheckpoint },
      objects: fleet.objects,
      redis_url: fleet.redis.url,
      pool: 'other',
      timing,
      log: createLogger({ level: 'silent', name: 'test' }),
      // The test never reaches the other dependencies.
    } as unknown as QueueServerOptions);
    t.teardown(() => server.close());
    const other = exportQueueName('other');
    const [others, ends] = [
      new Queue<ExportPayload, ExportReply>(other, bullmq),
      new QueueEvents(other, bullmq),
    ];
    t.teardown(() => Promise.all([others.close(), ends.close()]));
    await ends.waitUntilReady();
    const entry = await others.add('export', UNKNOWN, { attempts: 12 });
    t.match(await entry.waitUntilFinished(ends, 60_000), { error: { code: 'checkpoint_not_found' } });
    t.equal(began.length, 4);
    t.ok(began.every((at, i) => i === 0 || at - (began[i - 1] ?? 0) >= 15));
  });
});
