import t from 'tap';
import { fakeStateDigest } from '../testing/fake-state.js';
import { Fleet, type FleetOptions } from '../testing/fleet.js';

async function fleet(
  t: { teardown(end: () => Promise<void>): void },
  options: FleetOptions = {},
): Promise<Fleet> {
  const started = await Fleet.start(options);
  t.teardown(() => started.close());
  return started;
}

t.test(
  'a checkpoint on demand is saved while training continues, with the same digest at the end',
  async (t) => {
    const f = await fleet(t, { ranks: { slow: { from: 3, ms: 200 } } });
    await f.agent();
    const id = await f.submit({ steps: 100, every_steps: 1000, ranks: 3 });
    await f.until(id, (job) => job.progress.step >= 2);
    await f.store.requestCheckpoint(id);
    const first = await f.until(id, (job) => job.latest_checkpoint !== null);
    t.equal(first.state, 'running');
    const { step, state_digest } = first.latest_checkpoint!;
    t.equal(state_digest, fakeStateDigest(1, step));
    await f.store.requestCheckpoint(id);
    await f.until(id, (job) => job.latest_checkpoint!.step > step);
    await f.speedUp();
    const job = await f.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 100));
    const events = await f.events(id);
    const saved = events.filter(({ type }) => type === 'checkpoint.saved');
    const requests = events.filter(({ type }) => type === 'checkpoint.requested');
    t.equal(requests.length, 2);
    t.same(
      saved.map(({ data }) => data.save_request),
      [...requests.map(({ data }) => data.request), 0],
      'one for each request, and the last one',
    );
    t.ok(saved.every(({ data }) => Number(data.stall_seconds) >= 0 && Number(data.write_seconds) > 0));
  },
);

t.test('the next generation serves a save request that was open when a rank was lost', async (t) => {
  const faults = [{ rank: 1, step: 1, kind: 'hang' as const }];
  const f = await fleet(t, { ranks: { slow: { from: 2, ms: 200 }, faults } });
  await f.agent();
  const id = await f.submit({ steps: 60, every_steps: 1000, ranks: 2 });
  await f.untilState(id, 'running');
  await f.store.requestCheckpoint(id);
  const job = await f.until(id, (job) => job.latest_checkpoint !== null);
  t.ok(job.state_history.some(({ state }) => state === 'recovering'));
  t.equal(job.state, 'running');
});

t.test('every_seconds and auto save different checkpoints with the same digest', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 40 } });
  await f.agent();
  for (const checkpoint of [{ every_seconds: 1 }, { auto: true as const, on_busy: 'wait' as const }]) {
    const id = await f.submit({ steps: 60, ranks: 2, checkpoint: { ...checkpoint, keep: { last: 100 } } });
    const job = await f.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 60));
    const { data } = await f.store.listCheckpoints(id);
    // The auto interval is minutes for one failure a day and a cost of a second: only the last step is saved.
    if ('every_seconds' in checkpoint) t.ok(data.length >= 2, `${data.length} checkpoints`);
    else t.equal(data.length, 1);
    for (const { step, state_digest } of data) t.equal(state_digest, fakeStateDigest(1, step));
  }
});

t.test('a cancelled job leaves only complete checkpoints', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 5 } });
  await f.agent();
  const id = await f.submit({ steps: 100_000, every_steps: 1, ranks: 2 });
  await f.until(id, (job) => job.latest_checkpoint !== null);
  const leftover = `jobs/${id}/checkpoints/000000001-0-a-dead/shard-00000-of-00002.safetensors`;
  await f.objects.put(leftover, Buffer.from('half a save'));
  await f.store.requestCancel(id);
  await f.untilState(id, 'cancelled');
  const keys = await f.keys(`jobs/${id}/checkpoints/`);
  const known = (await f.store.listCheckpoints(id)).data.map(({ prefix }) => prefix).sort();
  t.strictSame([...new Set(keys.map((key) => key.split('/').slice(0, 4).join('/')))].sort(), known);
});

t.test('a fork continues from its checkpoint, with the same document to the same digest', async (t) => {
  const f = await fleet(t);
  await f.agent();
  const id = await f.submit({ steps: 40, every_steps: 10, keep: { last: 100 }, ranks: 2 });
  const job = await f.untilState(id, 'succeeded');
  const middle = (await f.store.listCheckpoints(id)).data.find(({ step }) => step < 40)!;
  const initFrom = { checkpoint: middle.id, job: id, prefix: middle.prefix, restore: 'continue' as const };
  const fork = await f.submit({ steps: 40, every_steps: 1000, ranks: 3, init_from: initFrom });
  const same = await f.untilState(fork, 'succeeded');
  t.equal(same.export?.state_digest, job.export?.state_digest);
  t.equal((await f.steps(fork))[0], middle.step + 1);
  const events = await f.events(fork);
  t.match(events.find(({ type }) => type === 'init.loaded')?.data, {
    checkpoint: middle.id,
    restore: 'continue',
  });
  const longer = await f.submit({ steps: 50, ranks: 1, init_from: initFrom });
  t.equal((await f.untilState(longer, 'succeeded')).export?.state_digest, fakeStateDigest(1, 50));
});
