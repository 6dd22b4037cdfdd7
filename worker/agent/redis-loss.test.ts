import t from 'tap';
import { recover } from '../../control/recovery/recover.js';
import { fakeStateDigest } from '../testing/fake-state.js';
import { Fleet } from '../testing/fleet.js';

t.test('a running job survives the loss of all Redis data', async (t) => {
  const f = await Fleet.start({ ranks: { slow: { from: 11, ms: 300 } } });
  t.teardown(() => f.close());
  await f.agent();
  const id = await f.submit({ steps: 30, every_steps: 5, ranks: 2 });
  await f.until(id, ({ latest_checkpoint }) => (latest_checkpoint?.step ?? 0) >= 10);
  await f.redis.forget();
  t.equal(await f.store.getJob(id), null);

  const onUnusable = (key: string) => t.fail(`${key} can't be used`);
  const found = await recover({ store: f.store, objects: f.objects, onUnusable });
  t.same(found.jobs, { queued: 1 });
  await f.speedUp();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 30), 'the bits of the undisturbed run');
  const [first] = await f.steps(id);
  t.ok(first !== undefined && first > 10, `it resumed at step ${first} and repeated no earlier step`);
  const types = (await f.events(id)).map(({ type }) => type);
  t.equal(types[0], 'job.recovered');
});
