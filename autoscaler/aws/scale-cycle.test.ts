/**
 * Tests the reconcile loop on a real job store and a stand-in for AWS that throttles and reports everything
 * late.
 */
import { AutoScalingClient } from '@aws-sdk/client-auto-scaling';
import t from 'tap';
import type { Job } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { startTestRedis } from '../../platform/testing/redis.js';
import { executionAt } from '../../state/testing/executions.js';
import { TestPool } from '../../state/testing/pools.js';
import { testWorker } from '../../state/testing/workers.js';
import { Autoscaler } from '../autoscaler.js';
import { AutoscalerMetrics } from '../metrics.js';
import { AutoScalingStandIn } from '../testing/autoscaling-stand-in.js';
import { NOW, policyOf } from '../testing/world.js';
import { AwsCapacity } from './aws-capacity.js';
import { Groups } from './groups.js';

const INTERVAL_MS = 10_000;
const SLOTS = 4;
const log = createLogger({ level: 'silent', name: 'test' });

t.test('scales from zero to the needed instances and back without disturbing a job', async (t) => {
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const pool = await TestPool.open(t, server, {});
  const aws = new AutoScalingStandIn();
  aws.addGroup('g', 10, ['drain']);
  const endpoint = await aws.listen();
  t.teardown(() => aws.close());
  const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' };
  const client = new AutoScalingClient({ endpoint, region: 'eu-central-1', credentials, maxAttempts: 2 });
  t.teardown(() => client.destroy());
  let now = NOW;
  const policy = policyOf({
    types: [{ name: 'g', slots: SLOTS, max: 10, price_per_hour: 1 }],
    idle_seconds: 60,
  });
  const metrics = new AutoscalerMetrics();
  const create = () =>
    new Autoscaler({
      store: { ...pool.store, now: async () => now },
      capacity: new AwsCapacity({ groups: new Groups(client), log, clock: () => now }),
      backgroundTasks: { count: async () => 0 },
      pools: [policy],
      interval_ms: INTERVAL_MS,
      metrics,
      publisher: null,
      log,
    });
  let autoscaler = create();
  t.teardown(() => autoscaler.close());
  const group = aws.group('g');
  const inService = () => group.instances.filter(({ state }) => state === 'InService').map(({ id }) => id);
  let most = 0;

  /**
   * Advances the service and the agents on its instances, then reconciles; every fifth reconciliation is
   * throttled throughout.
   */
  const reconcile = async (index: number) => {
    aws.advance();
    for (const id of inService())
      await pool.store.announceWorker(testWorker(`w-${id}`, SLOTS, { machine: id }), 60_000);
    for (const { id } of await pool.store.listWorkers())
      if (!inService().includes(id.slice(2))) await pool.store.withdrawWorker(id);
    aws.throttled = index % 5 === 0 ? 100 : index % 2;
    aws.stale = index % 4;
    await autoscaler.reconcile();
    aws.throttled = 0;
    now += INTERVAL_MS;
    most = Math.max(most, group.instances.length);
  };

  const end = async (job: Job | undefined) => {
    if (!job) return;
    await pool.store.requestCancel(job.id);
    await pool.store.finishJob(job.id, executionAt(job.id, 1), 'cancelled');
  };
  const jobs = [await pool.job({ min: 7 }), await pool.job({ min: 3 })];
  for (let i = 1; inService().length < 3; i += 1) await reconcile(i);
  t.equal(group.desired, 3, aws.calls.join(', '));
  for (const job of jobs) {
    t.ok(await pool.placements(job));
  }
  for (let i = 1; i < 15; i += 1) await reconcile(i);
  t.equal(inService().length, 3, 'busy instances stay');
  t.notOk(aws.calls.some((call) => call.startsWith('Terminate')));

  const [large] = jobs;
  await end(large);
  // Another autoscaler takes over in between.
  await autoscaler.close();
  autoscaler = create();
  for (let i = 1; i < 25; i += 1) await reconcile(i);
  const busy = (await pool.store.listWorkers()).filter(({ used_slots }) => used_slots > 0);
  t.equal(inService().length, busy.length, 'only busy instances are left');
  const [, small] = jobs;
  await end(small);
  for (let i = 1; group.instances.length > 0; i += 1) await reconcile(i);
  t.equal(group.desired, 0);
  t.equal(most, 3, 'never more than needed');
  t.equal(aws.calls.filter((call) => call.startsWith('Terminate')).length, 3, 'each is terminated once');
});
