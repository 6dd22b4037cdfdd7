import t from 'tap';
import type { Job } from '../../../contracts/index.js';
import { specKey } from '../../../formats/checkpoint/layout.js';
import { parseManifest } from '../../../formats/checkpoint/manifest.js';
import { parseSpec } from '../../../state/index.js';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet } from '../../testing/fleet.js';

const STEPS = 200;

/** Starts a job, waits for three steps and leaves its ranks slow until `speedUp`. */
async function running(f: Fleet): Promise<Job> {
  await f.agent(2);
  const id = await f.submit({ steps: STEPS, every_steps: 1000, ranks: 2, max_errors: 0 });
  return f.until(id, (job) => job.progress.step >= 3);
}

async function change(f: Fleet, { id }: Job, overrides: Job['spec']['train']['overrides']): Promise<void> {
  const before = await f.store.getJob(id);
  if (!before) throw new Error('the job is gone');
  const spec = { ...before.spec, train: { ...before.spec.train, overrides } };
  const { requested_ranks } = before;
  await f.store.updateJob({ before, spec, requested_ranks, changed: ['train'] });
}

async function lastManifest(f: Fleet, id: string) {
  const [checkpoint] = (await f.store.listCheckpoints(id)).data;
  return parseManifest(await f.objects.get(`${checkpoint?.prefix}/MANIFEST.json`));
}

t.test('ranks continue with the current overrides of the document', async (t) => {
  const f = await Fleet.start({ ranks: { slow: { from: 2, ms: 100 } } });
  t.teardown(() => f.close());
  const job = await running(f);
  const overrides = [{ step: STEPS - 50, lr: 0.5 }];
  await change(f, job, overrides);
  await f.until(job.id, (now) => now.state_history.some(({ reason }) => reason === 'update'));
  await f.speedUp();
  const done = await f.untilState(job.id, 'succeeded');
  t.equal(done.export?.state_digest, fakeStateDigest(1, STEPS));
  t.equal((await f.steps(job.id)).length, STEPS, 'no step was repeated');
  t.strictSame((await lastManifest(f, job.id)).overrides, overrides);
  t.notOk((await f.events(job.id)).some(({ type }) => type === 'overrides.moved'));
});

t.test('a late change takes effect at the step at which the ranks received it', async (t) => {
  const f = await Fleet.start({ ranks: { slow: { from: 2, ms: 100 } } });
  t.teardown(() => f.close());
  const job = await running(f);
  await change(f, job, [{ step: 1, lr: 0.5 }]);
  await f.until(job.id, (now) => (now.spec.train.overrides[0]?.step ?? 0) > 1);
  await f.speedUp();
  const done = await f.untilState(job.id, 'succeeded');
  const { overrides } = done.spec.train;
  const moved = (await f.events(job.id)).filter(({ type }) => type === 'overrides.moved');
  t.equal(moved.length, 1);
  const data = moved[0]?.data ?? {};
  t.strictSame(data.overrides, overrides);
  t.strictSame(overrides, [{ step: data.step, lr: 0.5 }]);
  t.strictSame((await lastManifest(f, job.id)).overrides, overrides);
  t.strictSame(
    parseSpec(await f.objects.get(specKey(job.id))).spec.train.overrides,
    overrides,
    'recover finds the moved overrides',
  );
  t.equal((await f.steps(job.id)).length, STEPS, 'no step was repeated');
});
