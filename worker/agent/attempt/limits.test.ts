import t from 'tap';
import { recover } from '../../../control/recovery/recover.js';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet } from '../../testing/fleet.js';

t.test('a job that reaches its budget saves, pauses and continues when it is resumed', async (t) => {
  const f = await Fleet.start({ ranks: { slow: { from: 2, ms: 300 } } });
  t.teardown(() => f.close());
  const expensive = await f.agent(4, { lease_ms: 900 }, { ZEROFLEET_PRICE_PER_RANK_HOUR: '3600' });
  const id = await f.submit({ steps: 30, every_steps: 100, limits: { max_cost: 0.5 } });
  const paused = await f.untilState(id, 'paused');
  t.equal(paused.reason, 'budget_reached');
  t.ok(paused.usage.cost >= 0.5);
  await expensive.close();
  await f.speedUp();

  await f.redis.forget();
  await recover({ store: f.store, objects: f.objects, onUnusable: (key) => t.fail(key) });
  t.match(
    await f.store.getJob(id),
    { state: 'paused', reason: 'budget_reached' },
    'a loss of Redis does not resume it',
  );
  await f.agent();
  await f.store.resumeJob(id);
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 30), 'the bits of a run without a limit');
});
