/** Tests of the prepared data in an agent's cache. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { until } from '../../platform/testing/waiting.js';
import { fakeStateDigest } from '../testing/fake-state.js';
import { Fleet } from '../testing/fleet.js';

const cacheOf = (fleet: Fleet) => join(fleet.dir, 'data', 'cache', 'tokens');

t.test(
  'an entry in use stays while its attempt runs; unused entries are evicted when there is no room',
  async (t) => {
    const fleet = await Fleet.start({ ranks: { slow: { from: 2, ms: 3_600_000 } } });
    t.teardown(() => fleet.close());
    await fleet.agent(4, {}, { ZEROFLEET_CACHE_BYTES: '0' });
    const entries = () => readdir(cacheOf(fleet));
    // The attempt ends shortly after its job.
    const unused = (entry = '') =>
      until(async () => !(await readdir(join(cacheOf(fleet), entry))).some((name) => name.endsWith('.use')));
    const slow = await fleet.submit({ steps: 5 });
    await fleet.until(slow, ({ state }) => state === 'running');
    const [used] = await entries();
    const texts = await Promise.all(
      ['one ', 'two '].map((text) => fleet.addDataset(Buffer.from(text.repeat(500)))),
    );
    const others: (string | undefined)[] = [];
    for (const dataset of texts) {
      const id = await fleet.submit({ dataset, steps: 1 });
      await fleet.untilState(id, 'succeeded');
      const now = await entries();
      await unused(now.find((name) => name !== used));
      others.push(now.find((name) => name !== used));
      t.equal(now.length, 2);
      t.ok(now.includes(used ?? ''));
    }
    t.not(others[0], others[1], 'the first entry was evicted for the second');
    await fleet.speedUp();
    await fleet.untilState(slow, 'succeeded');
    await unused(used);
    const last = await fleet.submit({ dataset: texts[0] ?? '', steps: 1 });
    await fleet.untilState(last, 'succeeded');
    t.same(await entries(), [others[0]]);
  },
);

t.test('removed cache entries are prepared again for the next generation', async (t) => {
  const fleet = await Fleet.start({
    ranks: { slow: { from: 3, ms: 3_600_000 }, faults: [{ rank: 0, step: 4, kind: 'kill' }] },
  });
  t.teardown(() => fleet.close());
  await fleet.agent();
  const id = await fleet.submit({ steps: 6, max_errors: 1 });
  await fleet.until(id, ({ state }) => state === 'running');
  await rm(cacheOf(fleet), { recursive: true });
  await fleet.speedUp();
  const job = await fleet.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 6));
  const prepared = (await fleet.events(id)).filter(({ type }) => type === 'data.prepared');
  t.equal(prepared.length, 2);
});
