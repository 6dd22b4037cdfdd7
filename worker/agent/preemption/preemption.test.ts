import t from 'tap';
import { until } from '../../../platform/testing/waiting.js';
import { deferred } from '../../shared/deferred.js';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet } from '../../testing/fleet.js';
import { startMetadataService } from '../../testing/metadata-service.js';
import { STEP_SECONDS } from '../../testing/stepped.js';
import { SaveEstimate } from './save-estimate.js';
import type { PreemptionNotice } from './source.js';

const HOUR_MS = 3_600_000;

t.test('a save fits if the slowest rank can store its part in the time that is left', async (t) => {
  const estimate = new SaveEstimate();
  t.ok(estimate.fits(1), 'a save without a measurement is tried');
  estimate.stepped({ seconds: { ...STEP_SECONDS, total: 1 } });
  estimate.stored(0, { cost: { stall_seconds: 0, write_seconds: 2 } });
  estimate.stored(1, { cost: { stall_seconds: 0, write_seconds: 4 } });
  t.equal(estimate.saveMs, 10_000);
  t.ok(estimate.fits(10_000));
  t.notOk(estimate.fits(9_999));
  t.ok(estimate.fits(null), 'the time of the termination is unknown');
  estimate.stored(1, { cost: { stall_seconds: 0, write_seconds: 1 } });
  t.ok(estimate.fits(6_000), 'the last save counts');
});

t.test('on a spot notice a job saves and continues elsewhere with its full error budget', async (t) => {
  const metadata = await startMetadataService();
  t.teardown(() => metadata.close());
  const f = await Fleet.start({ ranks: { slow: { from: 6, ms: 300 } } });
  t.teardown(() => f.close());
  const worker = await f.agent(4, {}, { ZEROFLEET_PREEMPTION_SOURCE: metadata.url });
  const id = await f.submit({ steps: 120, every_steps: 200, ranks: 2, max_errors: 0 });
  await f.until(id, ({ progress }) => progress.step >= 5);
  const time = new Date(Date.now() + 120_000).toISOString();
  metadata.documents.set('spot/instance-action', JSON.stringify({ action: 'terminate', time }));
  const queued = await f.untilState(id, 'queued');
  t.equal(queued.reason, 'preempted');
  t.ok((queued.latest_checkpoint?.step ?? 0) >= 5, 'progress is saved although no checkpoint was due');
  t.equal(queued.lost_work_seconds, 0);
  await worker.close();
  await f.speedUp();
  await f.agent();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 120));
});

t.test('without time to save, a job is returned at once', async (t) => {
  const f = await Fleet.start({ ranks: { slow: { from: 13, ms: HOUR_MS } } });
  t.teardown(() => f.close());
  const notice = deferred<PreemptionNotice | null>();
  await f.agent(4, {}, {}, { preemption: { watch: () => notice.promise } });
  const id = await f.submit({ steps: 200, every_steps: 10, ranks: 2, max_errors: 0 });
  await f.until(id, ({ progress, latest_checkpoint }) => latest_checkpoint !== null && progress.step === 12);
  // The autoscaler derives the grace period of pods from it.
  await until(async () => (await f.store.listWorkers()).some(({ save_seconds }) => (save_seconds ?? 0) > 0));
  notice.resolve({ cause: 'test', terminates_at: Date.now() });
  const queued = await f.untilState(id, 'queued');
  t.equal(queued.reason, 'preempted');
  t.equal(queued.latest_checkpoint?.step, 10, 'only the due checkpoint was saved');
  t.ok(queued.lost_work_seconds > 0);
  const skipped = (await f.events(id)).find(({ type }) => type === 'checkpoint.skipped');
  t.ok(Number(skipped?.data?.needed_ms) > Number(skipped?.data?.remaining_ms));
  await f.speedUp();
  await f.agent();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 200));
});
