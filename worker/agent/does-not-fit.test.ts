import t from 'tap';
import { resultKey } from '../../formats/checkpoint/layout.js';
import { testGpu, testWorker } from '../../state/testing/workers.js';
import { Fleet } from '../testing/fleet.js';

const SMALL = [testGpu('GPU-1', { memory_bytes: 2 ** 30 })];

t.test('a job fails once all workers are known and none has enough GPU memory', async (t) => {
  const fleet = await Fleet.start();
  t.teardown(() => fleet.close());
  const { store, objects } = fleet;
  const id = await fleet.submit();
  await store.announceWorker(testWorker('cpu', 0), 600_000);
  await store.announceWorker(testWorker('w', 1, { gpus: SMALL }), 600_000);
  await fleet.until(id, ({ reason }) => reason === 'waiting_for_capacity');
  await store.announceWorker(testWorker('v', 1, { gpus: SMALL }), 600_000);
  t.match(await store.getJob(id), { state: 'queued' }, 'a CPU worker might run it');
  await store.withdrawWorker('cpu');
  const failed = await fleet.untilState(id, 'failed');
  t.match(failed, { reason: 'insufficient_memory', failure: { category: 'user', retryable: false } });
  t.match(failed.failure?.message, /GiB of GPU memory .* have 1\.00 GiB; what would help/);
  t.match(
    (await fleet.events(id)).find(({ type }) => type === 'attempt.error'),
    { data: { code: 'insufficient_memory' } },
  );
  t.ok(await objects.head(resultKey(id)), 'the result has the error, too');
});
