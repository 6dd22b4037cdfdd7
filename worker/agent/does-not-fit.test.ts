import { DelayedError, type Job as QueueJob } from 'bullmq';
import t from 'tap';
import type { QueuePayload } from '../../contracts/index.js';
import { resultKey } from '../../platform/checkpoint/layout.js';
import { createLogger } from '../../platform/logging.js';
import { testGpu, testWorker } from '../../platform/testing/workers.js';
import { Fleet, TEST_TIMING } from '../testing/fleet.js';
import type { AgentDeps } from './context.js';
import { Processor } from './processor.js';

const SMALL = [testGpu('GPU-1', { memory_bytes: 2 ** 30 })];

t.test('a job that none of the GPUs is large enough for fails at its first claim', async (t) => {
  const fleet = await Fleet.start();
  t.teardown(() => fleet.close());
  const { store, objects } = fleet;
  const log = createLogger({ level: 'silent', name: 'processor' });
  const deps = { store, objects, log, timing: TEST_TIMING } as unknown as AgentDeps;
  const processor = new Processor(deps, 'w');
  const process = (job_id: string) => {
    const entry = { data: { job_id, attempt: 1 }, moveToDelayed: async () => undefined };
    return processor.process(entry as unknown as QueueJob<QueuePayload>, 'token', undefined);
  };

  const id = await fleet.submit();
  await store.announceWorker(testWorker('w', 1, { gpus: SMALL }), 60_000);
  await store.announceWorker(testWorker('cpu', 0), 60_000);
  await t.rejects(process(id), DelayedError, 'a CPU might take it');
  await store.withdrawWorker('cpu');
  await process(id);
  const failed = await store.getJob(id);
  t.match(failed, {
    state: 'failed',
    reason: 'does_not_fit',
    failure: { category: 'user', retryable: false },
  });
  t.match(failed?.failure?.message, /GiB of GPU memory .* have 1\.00 GiB; what would help/);
  t.ok(await objects.head(resultKey(id)), 'the result says so, too');
});
