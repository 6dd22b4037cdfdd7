import { join } from 'node:path';
import t from 'tap';
import { executionAt } from '../../../state/testing/executions.js';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { Fleet, type FleetOptions } from '../../testing/fleet.js';
import { type Stores, tokensDigest, trainAndSave } from '../../testing/saving-process.js';

async function fleet(
  t: { teardown(end: () => Promise<void>): void },
  options: FleetOptions = {},
): Promise<Fleet> {
  const started = await Fleet.start(options);
  t.teardown(() => started.close());
  return started;
}

type Damage = (bytes: Buffer) => Buffer | null;

const flipped =
  (offsetIn: (bytes: Buffer) => number): Damage =>
  (bytes) => {
    const bad = Buffer.from(bytes);
    bad[offsetIn(bytes)]! ^= 1;
    return bad;
  };
const cut =
  (length: (bytes: Buffer) => number): Damage =>
  (bytes) =>
    bytes.subarray(0, length(bytes));
const headerEnd = (shard: Buffer) => 8 + Number(shard.readBigUInt64LE());

/** Damages: name, object, change, and the code in the event. */
const DAMAGES: [title: string, object: RegExp, damage: Damage, code: string][] = [
  ['a digit of the manifest', /MANIFEST/, flipped((b) => b.indexOf('"seed":') + 7), 'manifest_invalid'],
  ['the seal of the manifest', /MANIFEST/, flipped((b) => b.length - 10), 'manifest_invalid'],
  ['half a manifest', /MANIFEST/, cut((b) => b.length >> 1), 'manifest_invalid'],
  ['an empty manifest', /MANIFEST/, () => Buffer.alloc(0), 'manifest_invalid'],
  ['the length of a header', /shard/, flipped(() => 0), 'shard_corrupt'],
  ['the text of a header', /shard/, flipped((b) => headerEnd(b) >> 1), 'shard_corrupt'],
  ['the first element', /shard/, flipped(headerEnd), 'shard_corrupt'],
  ['the last byte', /shard/, flipped((b) => b.length - 1), 'shard_corrupt'],
  ['a truncated shard', /shard/, cut((b) => b.length - 4), 'invalid_range'],
  ['a header without elements', /shard/, cut(headerEnd), 'invalid_range'],
  ['a missing shard', /shard/, () => null, 'object_not_found'],
];

t.test('the metrics of a checkpoint are stored before it: no later attempt repeats its steps', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 5 } });
  // Only saves write metrics.
  await f.agent(4, { report_interval_ms: 600_000 });
  const id = await f.submit({ steps: 100_000, every_steps: 5, ranks: 2 });
  const { latest_checkpoint } = await f.until(id, (job) => (job.latest_checkpoint?.step ?? 0) >= 15);
  const last = latest_checkpoint?.step ?? 0;
  const stored = await f.store.readSteps(id, null, 1_000, { from: 1, to: last });
  const steps = stored.map(({ step }) => step).filter((step) => step <= last);
  t.same(
    steps,
    Array.from({ length: last }, (_, i) => i + 1),
  );
});

t.test('any damaged checkpoint is skipped for the one before, with an event', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 5 } });
  await f.agent();
  const id = await f.submit({ steps: 100_000, every_steps: 5, keep: { last: 4 }, ranks: 2, max_errors: 0 });
  await f.until(id, (job) => (job.latest_checkpoint?.step ?? 0) >= 10);
  let number = 0;
  for (const [title, object, damage, code] of DAMAGES) {
    await f.store.requestPause(id);
    await f.untilState(id, 'paused');
    const [newest, before] = (await f.store.listCheckpoints(id)).data;
    const key = (await f.keys(newest!.prefix)).find((name) => object.test(name))!;
    const bad = damage(await f.objects.get(key));
    if (bad === null) await f.objects.delete([key]);
    else await f.objects.put(key, bad);
    const { length } = await f.events(id);
    await f.store.resumeJob(id, { ranks: 1 + (number++ % 3) });
    await f.until(id, (job) => job.latest_checkpoint!.step > newest!.step);
    const events = (await f.events(id)).slice(length);
    const fallbacks = events.filter(({ type }) => type === 'checkpoint.fallback').map(({ data }) => data);
    t.match(fallbacks, [{ checkpoint: newest!.id, step: newest!.step, code }], title);
    t.equal(events.find(({ type }) => type === 'training.started')?.data.step, before!.step, title);
  }
  await f.store.requestPause(id);
  const job = await f.untilState(id, 'paused');
  t.equal(job.latest_checkpoint?.state_digest, fakeStateDigest(1, job.latest_checkpoint!.step));
});

t.test('a job whose tokens differ from those of its checkpoint fails', async (t) => {
  const f = await fleet(t);
  const id = await f.submit({ steps: 20, every_steps: 100, ranks: 2, max_errors: 0 });
  await trainAndSave(f, id, 2, 1, `sha256:${'1'.repeat(64)}`);
  const { latest_checkpoint, epoch } = (await f.store.getJob(id))!;
  await f.store.releaseAttempt(id, executionAt(id, epoch), { to: 'queued' });
  await f.agent();
  const { failure } = await f.untilState(id, 'failed');
  t.match(failure, {
    code: 'tokens_mismatch',
    message: /this worker has sha256:.*; run the same version of/,
  });
  t.ok(failure?.message.includes(`checkpoint ${latest_checkpoint!.id} has sha256:1111`));
});

t.test('retention keeps the newest checkpoints, and leftovers are removed', async (t) => {
  const f = await fleet(t, { ranks: { step_ms: 5 } });
  const id = await f.submit({ steps: 30, every_steps: 4, keep: { last: 2 }, ranks: 2 });
  const leftover = `jobs/${id}/checkpoints/000000004-0-a-dead/shard-00000-of-00002.safetensors`;
  await f.objects.put(leftover, Buffer.from('half a save'));
  await f.agent();
  await f.untilState(id, 'succeeded');
  const [last, before, ...older] = (await f.store.listCheckpoints(id)).data.map(({ step }) => step);
  t.equal(last, 30);
  // The last periodic save depends on speed: one is skipped while two before it are in progress.
  t.ok(before !== undefined && before < 30 && before % 4 === 0, `a periodic checkpoint, at step ${before}`);
  t.strictSame(older, []);
  const keys = await f.keys(`jobs/${id}/checkpoints/`);
  t.strictSame(new Set(keys.map((key) => Number(key.split('/')[3]?.slice(0, 9)))), new Set([before, 30]));
  t.equal(keys.filter((key) => key.endsWith('MANIFEST.json')).length, 2);
  t.equal(keys.length, 6);
});

t.test('the best checkpoints are kept, also by a worker that did not evaluate them', async (t) => {
  const evalLosses = [{ 5: 3, 10: 1.25, 15: 2, 20: 4, 25: 5, 30: 4, 35: 5, 40: 3 }];
  const f = await fleet(t, { ranks: { slow: { from: 22, ms: 300 }, eval_losses: evalLosses } });
  const first = await f.agent();
  const id = await f.submit({
    steps: 40,
    checkpoint: { every_steps: 5, on_busy: 'wait', keep: { last: 1, best: 2 } },
    train: { evaluation: { every_steps: 5 } },
    data: { validation_fraction: 0.1 },
    ranks: 2,
  });
  await f.until(id, ({ latest_checkpoint }) => latest_checkpoint?.step === 20);
  await first.close();
  await f.speedUp();
  await f.agent();
  await f.untilState(id, 'succeeded');
  const { data } = await f.store.listCheckpoints(id);
  t.strictSame(
    data.map(({ step, eval_losses }) => [step, eval_losses?.validation]),
    [
      [40, 3],
      [15, 2],
      [10, 1.25],
    ],
  );
});

/** Changes to the weights of a last checkpoint, which is exported and not loaded, and the code in the event. */
const LAST_DAMAGES: [damage: Damage, code: string][] = [
  [flipped(headerEnd), 'shard_corrupt'],
  [cut(headerEnd), 'invalid_range'],
  [() => null, 'object_not_found'],
];

t.test('a damaged last checkpoint is skipped, and its steps are trained again', async (t) => {
  const f = await fleet(t);
  const ids: string[] = [];
  for (const [damage] of LAST_DAMAGES) {
    const id = await f.submit({ steps: 6, every_steps: 100, keep: { last: 2 }, ranks: 2 });
    ids.push(id);
    await trainAndSave(f, id, 2, 2, await tokensDigest(f, id, join(f.dir, 'tokens')));
    const { latest_checkpoint, epoch } = (await f.store.getJob(id))!;
    const { checkpoint } = (await f.store.findCheckpoint(latest_checkpoint!.id))!;
    const key = (await f.keys(checkpoint!.prefix)).find((name) => name.includes('shard'))!;
    const bad = damage(await f.objects.get(key));
    if (bad === null) await f.objects.delete([key]);
    else await f.objects.put(key, bad);
    await f.store.releaseAttempt(id, executionAt(id, epoch), { to: 'queued' });
  }
  await f.agent();
  for (const [at, id] of ids.entries()) {
    const job = await f.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 6));
    const fallbacks = (await f.events(id)).filter(({ type }) => type === 'checkpoint.fallback');
    t.match(
      fallbacks.map(({ data }) => data),
      [{ step: 6, code: LAST_DAMAGES[at]?.[1] }],
    );
    const { data } = await f.store.listCheckpoints(id);
    t.match(data, [
      { step: 6, damaged: false },
      { step: 3, damaged: false },
    ]);
    t.equal(job.latest_checkpoint?.id, data[0]?.id);
  }
});

const dead = () => Promise.reject(new Error('dead'));

/** Returns a job store that fails from the second commit of a checkpoint on. */
function failingCommits(store: Fleet['store']): Fleet['store'] {
  let calls = 0;
  const commitCheckpoint: typeof store.commitCheckpoint = (...call) =>
    calls++ === 0 ? store.commitCheckpoint(...call) : dead();
  return { ...store, commitCheckpoint };
}

/** Points at which the agent died that saved the last step, so that more checkpoints are left than the job keeps. */
const LAST_SAVES: [point: string, stores: (f: Fleet) => Stores][] = [
  [
    'before the objects were deleted',
    (f) => ({ store: f.store, objects: Object.assign(Object.create(f.objects), { delete: dead }) }),
  ],
  [
    'before the record was deleted',
    (f) => ({ store: { ...f.store, removeCheckpoint: dead }, objects: f.objects }),
  ],
  ['before the new checkpoint was recorded', (f) => ({ store: failingCommits(f.store), objects: f.objects })],
];

t.test('a job that ends removes what an interrupted retention left', async (t) => {
  const f = await fleet(t);
  const ids: string[] = [];
  for (const [point, stores] of LAST_SAVES) {
    const id = await f.submit({ steps: 6, keep: { last: 1 }, ranks: 2 });
    ids.push(id);
    await trainAndSave(stores(f), id, 2, 2).catch(() => undefined);
    const manifests = (await f.keys(`jobs/${id}/checkpoints/`)).filter((key) =>
      key.endsWith('MANIFEST.json'),
    );
    t.equal(manifests.length, 2, point);
    const epoch = (await f.store.getJob(id))?.epoch ?? 0;
    await f.store.releaseAttempt(id, executionAt(id, epoch), { to: 'queued' });
  }
  await f.agent();
  for (const [at, id] of ids.entries()) {
    const job = await f.untilState(id, 'succeeded');
    t.equal(job.export?.state_digest, fakeStateDigest(1, 6));
    const { data } = await f.store.listCheckpoints(id);
    const files = await f.keys(`jobs/${id}/checkpoints/`);
    t.strictSame([data.map(({ step }) => step), files.length], [[6], 3], `${LAST_SAVES[at]?.[0]}`);
  }
});
