/** Tests of jobs that start from a checkpoint of another job. */
import t from 'tap';
import type { Restore } from '../../../contracts/rank-protocol.js';
import { seal } from '../../../formats/checkpoint/manifest-seal.js';
import { fakeInitializedDigest, fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet, type FleetOptions } from '../../testing/fleet.js';

const FROM = 8;
const STEPS = 20;

/** Starts a fleet with a finished job of FROM steps; `init` returns the spec's reference to its last checkpoint. */
async function source(t: { teardown(end: () => Promise<void>): void }, options: FleetOptions = {}) {
  const fleet = await Fleet.start(options);
  t.teardown(() => fleet.close());
  await fleet.agent();
  const job = await fleet.untilState(await fleet.submit({ steps: FROM, ranks: 2 }), 'succeeded');
  const [last] = (await fleet.store.listCheckpoints(job.id)).data;
  if (last?.step !== FROM) throw new Error('the source has no checkpoint of its last step');
  const init = (restore: Restore) => ({ checkpoint: last.id, job: job.id, prefix: last.prefix, restore });
  return { fleet, checkpoint: last, init };
}

t.test('a job restores the selected parts on any number of ranks and counts its own steps', async (t) => {
  const { fleet, checkpoint, init } = await source(t);
  const digests = new Set([fakeStateDigest(1, STEPS)]);
  for (const [restore, ranks] of [
    ['full', 3],
    ['weights', 1],
    ['weights_16bit', 2],
  ] as const) {
    const id = await fleet.submit({ steps: STEPS, every_steps: 100, ranks, init_from: init(restore) });
    const job = await fleet.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeInitializedDigest(1, FROM, restore, STEPS), restore);
    digests.add(job.export?.state_digest ?? '');
    t.equal((await fleet.steps(id))[0], 1);
    const loaded = (await fleet.events(id)).filter(({ type }) => type === 'init.loaded');
    const { id: from, job_id, step, state_digest } = checkpoint;
    t.strictSame(
      loaded.map(({ data }) => data),
      [{ checkpoint: from, job_id, step, state_digest, restore }],
    );
  }
  t.equal(digests.size, 4, 'each restore has its own digest');
});

t.test('a job resumes from its own checkpoint after the initial one is deleted', async (t) => {
  const { fleet, init } = await source(t, { ranks: { slow: { from: FROM + 1, ms: 300 } } });
  const initFrom = init('full');
  const id = await fleet.submit({ steps: STEPS, every_steps: 100, ranks: 2, init_from: initFrom });
  await fleet.until(id, (job) => job.progress.step >= FROM);
  await fleet.store.requestPause(id);
  await fleet.untilState(id, 'paused');
  await fleet.objects.delete(await fleet.keys(initFrom.prefix));
  await fleet.speedUp();
  await fleet.store.resumeJob(id, { ranks: 3 });
  const job = await fleet.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeInitializedDigest(1, FROM, 'full', STEPS));
  t.equal((await fleet.events(id)).filter(({ type }) => type === 'init.loaded').length, 1);
});

t.test('a job whose ranks die before its first checkpoint starts again from the initial one', async (t) => {
  const { fleet, init } = await source(t, { ranks: { faults: [{ rank: 2, step: 3, kind: 'kill' }] } });
  const id = await fleet.submit({ steps: STEPS, every_steps: 100, ranks: 3, init_from: init('weights') });
  const job = await fleet.untilState(id, 'succeeded');
  t.equal(job.export?.state_digest, fakeInitializedDigest(1, FROM, 'weights', STEPS));
});

t.test('a missing, damaged or mismatched checkpoint is refused with its reason', async (t) => {
  const { fleet, init } = await source(t);
  const initFrom = init('full');
  const manifestKey = `${initFrom.prefix}/MANIFEST.json`;
  const good = await fleet.objects.get(manifestKey);
  const { sha256: _, ...manifest } = JSON.parse(String(good));
  const put = (change: object) => fleet.objects.put(manifestKey, seal({ ...manifest, ...change }));
  const failure = async () => {
    const job = await fleet.untilState(await fleet.submit({ ranks: 2, init_from: initFrom }), 'failed');
    t.notOk(
      job.state_history.some(({ state }) => state === 'recovering'),
      'no retry',
    );
    return job.failure;
  };

  await put({ optimizer: 'lamb' });
  t.match(await failure(), {
    category: 'user',
    code: 'checkpoint_mismatch',
    rank: null,
    message: /trained with lamb .*, the job has adamw/,
  });

  await put({});
  const [shard] = (await fleet.keys(initFrom.prefix)).filter((key) => key.endsWith('.safetensors'));
  const bytes = await fleet.objects.get(shard!);
  const damaged = Buffer.from(bytes);
  damaged[damaged.length - 3]! ^= 1;
  await fleet.objects.put(shard!, damaged);
  t.match(await failure(), { code: 'shard_corrupt', message: new RegExp(initFrom.checkpoint) });

  const notFound = { category: 'user', code: 'checkpoint_not_found', message: new RegExp(initFrom.job) };
  await fleet.objects.delete([shard!]);
  t.match(await failure(), notFound);
  await fleet.objects.delete([manifestKey]);
  t.match(await failure(), notFound);
});
