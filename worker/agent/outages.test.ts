import { rename, rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { fakeStateDigest } from '../testing/fake-core.js';
import { Fleet, type FleetOptions } from '../testing/fleet.js';

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

async function fleet(
  t: { teardown(end: () => Promise<void>): void },
  options: FleetOptions = {},
): Promise<Fleet> {
  const started = await Fleet.start({ ranks: { step_ms: 20 }, ...options });
  t.teardown(() => started.close());
  return started;
}

t.test('a disk that is full for a while costs saves, not the job', async (t) => {
  const f = await fleet(t);
  await f.agent();
  const id = await f.submit({ steps: 60, every_steps: 5, ranks: 2 });
  await f.until(id, (job) => job.latest_checkpoint !== null);
  const makeRoom = await f.fillDisk();
  const failed = await untilEvent(f, id, 'checkpoint.failed');
  t.match(failed.data, { code: 'disk_full' });
  t.equal((await f.store.getJob(id))?.state, 'running', 'training goes on');
  await makeRoom();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 60));
  t.strictSame(await f.steps(id), upTo(60), 'no step had to be repeated');
});

t.test('a disk that stays full fails the job at its end, with its checkpoints kept', async (t) => {
  const f = await fleet(t);
  await f.agent();
  const id = await f.submit({ steps: 40, every_steps: 5, ranks: 2 });
  const saved = await f.until(id, (job) => job.latest_checkpoint !== null);
  await f.fillDisk();
  const job = await f.untilState(id, 'failed');
  t.match(job.failure, { category: 'capacity', code: 'disk_full', retryable: true });
  t.ok((job.latest_checkpoint?.step ?? 0) >= (saved.latest_checkpoint?.step ?? 0));
  t.ok((await f.store.listCheckpoints(id)).data.length > 0);
});

t.test('an object store that is gone for a while costs nothing but time', async (t) => {
  const f = await fleet(t);
  await f.agent(4, { storage: { attempts: 100, first_delay_ms: 20, max_delay_ms: 100 } });
  const id = await f.submit({ steps: 80, every_steps: 10, ranks: 2 });
  await f.until(id, (job) => job.latest_checkpoint !== null);
  await rename(f.objects_dir, `${f.objects_dir}.away`);
  const failed = await untilEvent(f, id, 'checkpoint.failed');
  t.match(failed.data, { code: /bucket_not_found|object_store_unavailable/ });
  // Whatever was made in its place is not the store.
  await rm(f.objects_dir, { recursive: true, force: true });
  await rename(`${f.objects_dir}.away`, f.objects_dir);
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 80));
});

t.test('Redis away for less than the lease: training goes on and no metric is lost', async (t) => {
  const f = await fleet(t);
  await f.agent();
  const id = await f.submit({ steps: 80, every_steps: 10, ranks: 2 });
  await f.until(id, (job) => job.progress.step >= 5);
  await f.redis.kill();
  await delay(500);
  await f.redis.start();
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 80));
  t.equal(job.epoch, 1);
  t.strictSame(await f.steps(id), upTo(80));
});

t.test(
  'Redis away for longer than the lease: the ranks stop, and the job goes on from its last checkpoint',
  async (t) => {
    const f = await fleet(t, { ranks: { step_ms: 50 } });
    await f.agent(4, { lease_ms: 1500 });
    const id = await f.submit({ steps: 100, every_steps: 5, ranks: 2, max_errors: 0 });
    const before = await f.until(id, (job) => job.latest_checkpoint !== null);
    await f.redis.kill();
    await delay(3000);
    await f.redis.start();
    const job = await f.untilState(id, 'succeeded');
    t.ok(job.epoch > before.epoch);
    t.equal(job.export?.state_digest, fakeStateDigest(1, 100));
  },
);

t.test('a damaged checkpoint is passed over for the one before, and an event says so', async (t) => {
  const f = await fleet(t);
  await f.agent();
  const id = await f.submit({ steps: 60, every_steps: 5, ranks: 2, max_errors: 0 });
  await f.until(id, (job) => (job.latest_checkpoint?.step ?? 0) >= 10);
  await f.store.requestPause(id);
  await f.untilState(id, 'paused');
  const [newest, before] = (await f.store.listCheckpoints(id)).data;
  const shard = (await f.keys(newest!.prefix)).find((key) => key.endsWith('.safetensors'))!;
  const bytes = await f.objects.get(shard);
  bytes[bytes.length - 5]! ^= 1;
  await f.objects.put(shard, bytes);
  await f.store.resumeJob(id, { ranks: 3 });
  const job = await f.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeStateDigest(1, 60));
  const fallback = (await f.events(id)).find(({ type }) => type === 'checkpoint.fallback');
  t.match(fallback?.data, { checkpoint: newest!.id, step: newest!.step, code: 'shard_corrupt' });
  const started = (await f.events(id)).filter(({ type }) => type === 'training.started').at(-1);
  t.equal(started?.data.step, before!.step);
});

t.test('a missing shard and a malformed manifest are passed over too', async (t) => {
  for (const damage of ['shard', 'manifest'] as const) {
    const f = await fleet(t);
    const agent = await f.agent();
    const id = await f.submit({ steps: 60, every_steps: 5, ranks: 2, max_errors: 0 });
    await f.until(id, (job) => (job.latest_checkpoint?.step ?? 0) >= 10);
    await f.store.requestPause(id);
    await f.untilState(id, 'paused');
    const [newest] = (await f.store.listCheckpoints(id)).data;
    const keys = await f.keys(newest!.prefix);
    if (damage === 'shard')
      await f.objects.delete(keys.filter((key) => key.endsWith('.safetensors')).slice(0, 1));
    else
      await f.objects.put(
        keys.find((key) => key.endsWith('MANIFEST.json'))!,
        Buffer.from('{"format_version": 1'),
      );
    await f.store.resumeJob(id);
    const job = await f.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 60));
    t.match((await f.events(id)).find(({ type }) => type === 'checkpoint.fallback')?.data, {
      checkpoint: newest!.id,
      code: damage === 'shard' ? 'object_not_found' : 'manifest_invalid',
    });
    await agent.close();
  }
});

t.test('only the newest checkpoints are kept, and leftovers are swept', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 5 } });
  const id = await f.submit({ steps: 30, every_steps: 4, keep_last: 2, ranks: 2 });
  const leftover = `jobs/${id}/checkpoints/000000004-0-dead/shard-00000-of-00002.safetensors`;
  await f.objects.put(leftover, Buffer.from('half a save'));
  await f.agent();
  await f.untilState(id, 'succeeded');
  const steps = (await f.store.listCheckpoints(id)).data.map(({ step }) => step);
  t.strictSame(steps, [30, 28]);
  const keys = await f.keys(`jobs/${id}/checkpoints/`);
  t.strictSame([...new Set(keys.map((key) => Number(key.split('/')[3]?.slice(0, 9))))], [28, 30]);
  t.equal(keys.filter((key) => key.endsWith('MANIFEST.json')).length, 2);
  t.equal(keys.length, 6);
});

async function untilEvent(f: Fleet, id: string, type: string) {
  for (let tries = 0; tries < 1000; tries++) {
    const event = (await f.events(id)).find((entry) => entry.type === type);
    if (event) return event;
    await delay(20);
  }
  throw new Error(`no event ${type}`);
}
