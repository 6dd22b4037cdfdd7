/** The client across a loss of Redis. */
import t from 'tap';
import { ADMIN_KEY, startTestStack } from '../../api/testing/stack.js';
import { claimAndTrain } from '../../api/testing/training.js';
import { collect, Zerofleet } from '../../clients/typescript/index.js';
import type { StreamEntry } from '../../contracts/index.js';
import { until } from '../../platform/testing/waiting.js';

t.test('following continues with the recovered entries; lists refuse an earlier position', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const { jobs } = new Zerofleet({ baseUrl: await stack.listen(), apiKey: ADMIN_KEY });
  const { id } = await stack.createJob();
  await claimAndTrain(stack.store, id, { steps: 3 });
  const before = await stack.store.readStream(id, null, 100);
  const last = before.at(-1)?.position ?? '';
  const seen: StreamEntry[] = [];
  const follow = jobs.follow(id);
  while (seen.length < before.length) {
    const { value, done } = await follow.next();
    if (done) throw new Error('it has not ended');
    seen.push(value);
  }
  t.strictSame(seen, before);
  t.strictSame(await collect(jobs.metrics(id, before[0]?.position)), await collect(jobs.metrics(id)));
  t.strictSame(await collect(jobs.events(id, last)), []);

  await until(() => stack.followers() === 1);
  await stack.loseRedis();
  const epoch = await claimAndTrain(stack.store, id, { steps: 9 });
  await stack.store.finishJob(id, epoch, 'succeeded');
  const now = await stack.store.readStream(id, null, 100);
  t.ok(now.length > before.length);
  t.strictSame(await collect(follow), now);
  t.strictSame(await collect(jobs.follow(id, { after: last })), now);
  const lists = [jobs.events(id, last), jobs.metrics(id, last), jobs.logs(id, { after: last })];
  for (const list of lists) await t.rejects(collect<unknown>(list), { code: 'position_lost', status: 410 });
  t.equal((await collect(jobs.metrics(id))).length, 9);
});
