import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { createLogger } from '../platform/logging/logging.js';
import { openObjectStore } from '../platform/object-store/index.js';
import { startTestRedis } from '../platform/testing/redis.js';
import { openJobStore } from '../state/index.js';
import { testDataset } from '../state/testing/jobs.js';
import { collectPeriodically } from './garbage-collector.js';

t.test('servers collect garbage in their store periodically until they are closed', async (t) => {
  const redis = await startTestRedis();
  const store = await openJobStore({ url: redis.url });
  const objects = await openObjectStore(new URL(`file://${t.testdir()}`).href);
  t.teardown(async () => {
    await store.close();
    await objects.close();
    await redis.stop();
  });
  await store.putDataset(testDataset());
  const log = createLogger({ level: 'silent', name: 'test' });
  const options = { store, objects, log, interval_ms: 20, grace_ms: 0 };
  const servers = [collectPeriodically(options), collectPeriodically(options)];
  t.teardown(() => Promise.all(servers.map((server) => server.close())));
  for (const round of [1, 2]) {
    const key = `datasets/ds_${round}/text`;
    await objects.put(key, Buffer.from('left over'));
    while (await objects.head(key)) await sleep(5);
  }
  await Promise.all(servers.map((server) => server.close()));
  const key = 'datasets/ds_3/text';
  await objects.put(key, Buffer.from('left over'));
  await sleep(50);
  t.ok(await objects.head(key), 'a closed collector does nothing');
});
