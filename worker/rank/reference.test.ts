import t, { type Test } from 'tap';
import type { StartMessage } from '../../contracts/rank-protocol.js';
import { REFERENCE_FILE } from '../../formats/checkpoint/layout.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { fakeCore } from '../testing/fake-core.js';
import { startMessage, testSpec } from '../testing/start-message.js';
import { beginReference, type ContinuedCheckpoint, type Reference } from './reference.js';
import { trainerConfig } from './trainer-config.js';

type Objective = NonNullable<StartMessage['spec']['train']['objective']>;
const DPO: Objective = { type: 'dpo', beta: 0.1, label_smoothing: 0, reference: 'initial' };

async function trainerOf(start: StartMessage) {
  const trainer = fakeCore().createTrainer(trainerConfig(start), (key, value) => trainer.deliver(key, value));
  await trainer.initialize();
  return trainer;
}

async function rank(t: Test, objective: Objective | null = DPO) {
  const objects = await openObjectStore(`file://${t.testdir()}`);
  t.teardown(() => objects.close());
  const spec = testSpec();
  if (objective) spec.train.objective = objective;
  const start = startMessage({ spec });
  return { ctx: { start, objects }, trainer: await trainerOf(start), objects };
}

/** Stores the reference as a save of rank 0 does. */
async function saved(
  t: Test,
  { ctx, objects }: Awaited<ReturnType<typeof rank>>,
  { bytes, record }: Reference,
): Promise<ContinuedCheckpoint> {
  await objects.put(`folder/${REFERENCE_FILE}`, bytes);
  t.equal(record.bytes, bytes.length);
  const { tokens_digest } = ctx.start;
  return {
    directory: 'folder',
    manifest: { id: 'ckpt_1', job_id: 'job_1', tokens_digest, reference: record },
  };
}

t.test('a job computes its reference once, and continues with that of its checkpoint', async (t) => {
  const first = await rank(t);
  const reference = await beginReference(first.ctx, first.trainer, null);
  t.ok(reference);
  t.equal(reference?.bytes.length, 16);
  const { preference } = await first.trainer.step(0);
  const continued = await saved(t, first, reference as Reference);
  const trainer = await trainerOf(first.ctx.start);
  t.strictSame((await beginReference(first.ctx, trainer, continued))?.record, reference?.record);
  t.strictSame((await trainer.step(0)).preference, preference);
});

t.test('the bytes of a stored reference may be a part of a larger buffer', async (t) => {
  const first = await rank(t);
  const reference = (await beginReference(first.ctx, first.trainer, null)) as Reference;
  const continued = await saved(t, first, reference);
  // Small buffers of Node.js, such as those of an S3 client, share one memory; this one begins at an odd offset of it.
  const shared = new Uint8Array(1000);
  shared.set(reference.bytes, 3);
  const part = Buffer.from(shared.buffer, 3, reference.bytes.length);
  const objects: typeof first.objects = Object.create(first.objects, { get: { value: async () => part } });
  const trainer = await trainerOf(first.ctx.start);
  await beginReference({ ...first.ctx, objects }, trainer, continued);
  t.strictSame((await trainer.step(0)).preference, (await first.trainer.step(0)).preference);
});

t.test('objectives without an initial model have no reference', async (t) => {
  for (const objective of [
    null,
    { ...DPO, reference: 'base' as const },
    { type: 'orpo' as const, beta: 1 },
  ]) {
    const { ctx, trainer } = await rank(t, objective);
    t.equal(await beginReference(ctx, trainer, null), null);
    await t.resolves(trainer.step(0));
  }
});

t.test(
  'a reference of another objective or other data, or none, is refused with what to write',
  async (t) => {
    const first = await rank(t);
    const reference = (await beginReference(first.ctx, first.trainer, null)) as Reference;
    const continued = await saved(t, first, reference);
    const refused = { code: 'checkpoint_mismatch', message: /restore: weights/ };
    const withManifest = (fields: Partial<ContinuedCheckpoint['manifest']>) =>
      beginReference(first.ctx, first.trainer, {
        ...continued,
        manifest: { ...continued.manifest, ...fields },
      });
    await t.rejects(withManifest({ reference: null }), refused);
    await t.rejects(withManifest({ reference: { ...reference.record, objective: 'ipo' } }), refused);
    await t.rejects(withManifest({ tokens_digest: 'sha256:other' }), refused);
    await t.resolves(withManifest({}));
  },
);

t.test('a damaged reference is found', async (t) => {
  const first = await rank(t);
  const reference = (await beginReference(first.ctx, first.trainer, null)) as Reference;
  const continued = await saved(t, first, reference);
  const damaged = Buffer.from(reference.bytes);
  damaged[3] = 1;
  await first.objects.put(`folder/${REFERENCE_FILE}`, damaged);
  await t.rejects(beginReference(first.ctx, first.trainer, continued), { code: 'shard_corrupt' });
});
