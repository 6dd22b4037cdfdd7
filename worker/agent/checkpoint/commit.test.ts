/** Tests of the manifest of a save: its content, and that it is put once. */
import t from 'tap';
import type { ConnectedMessage } from '../../../contracts/rank-protocol.js';
import { encodeManifest, FORMAT_VERSION, parseManifest } from '../../../formats/checkpoint/manifest.js';
import { ADAM_STATES, testManifest, testParams } from '../../../formats/testing/checkpoints.js';
import { documentHash } from '../../../platform/canonical-json.js';
import { type ObjectStore, ObjectStoreError } from '../../../platform/object-store/index.js';
import { testSpec } from '../../testing/start-message.js';
import { buildManifest, putManifest } from './commit.js';
import type { CompleteSave } from './save-collector.js';

const shape = { numels: [10], ranks: 2 };
const plain = testSpec({ steps: 100 });
const overrides = [
  { step: 6, lr: 0.5 },
  { step: 7, lr: null },
];
const spec = { ...plain, train: { ...plain.train, overrides } };
const { sharding, shards } = testManifest(shape);
const connected: ConnectedMessage = {
  kind: 'connected',
  params: testParams(shape),
  states: [...ADAM_STATES],
  sharding,
  numerics_fingerprint: 'cpu-generic/1',
};
const by = {
  spec,
  connected,
  world_size: 2,
  epoch: 4,
  parent: 'ckpt_before',
  data_digest: 'sha256:1',
  tokens_digest: 'sha256:2',
};
const save: CompleteSave = {
  directory: 'x',
  step: 7,
  optimizer_steps: 6,
  skipped_steps: 1,
  eval_losses: { validation: 2.5, code: 1.25 },
  calls: null,
  early_stopping: { best_eval_loss: 2.25, best_step: 5, evaluations_without_improvement: 1 },
  reference: { bytes: 16, sha256: 'ab'.repeat(32), objective: 'dpo' },
  loss_scaler: { scale: 8, iteration: 7, last_overflow_iteration: 3, hysteresis: 2, skipped_in_a_row: 0 },
  shards,
  base_digest_parts: null,
  digest_parts: [`${'0'.repeat(31)}a`, `${'0'.repeat(31)}b`],
  save_request: 0,
  cost: { stall_seconds: 0, write_seconds: 0 },
};

t.test('the manifest has all state that determines the further training', async (t) => {
  const manifest = buildManifest('job_1', save, by);
  const { id, committed_at, program_version, ...rest } = manifest;
  t.match(id, /^ckpt_[0-9A-HJKMNP-TV-Z]{26}$/);
  t.ok(Math.abs(Date.parse(committed_at) - Date.now()) < 600_000);
  t.ok(program_version);
  t.strictSame(rest, {
    format_version: FORMAT_VERSION,
    job_id: 'job_1',
    made_from: null,
    step: 7,
    optimizer_steps: 6,
    skipped_steps: 1,
    eval_losses: { validation: 2.5, code: 1.25 },
    early_stopping: { best_eval_loss: 2.25, best_step: 5, evaluations_without_improvement: 1 },
    reference: save.reference,
    calls: null,
    world_size: 2,
    epoch: 4,
    params: connected.params,
    optimizer: 'adamw',
    states: connected.states,
    sharding,
    shards: save.shards,
    state_digest: `${'0'.repeat(30)}15`,
    base: null,
    seed: spec.train.seed,
    data_seed: spec.data.seed,
    data_digest: 'sha256:1',
    tokens_digest: 'sha256:2',
    lr_schedule: { decay_steps: null, ...spec.train.lr_schedule },
    overrides: [{ step: 6, lr: 0.5 }],
    loss_scaler: { type: 'none', ...save.loss_scaler },
    total_steps: 100,
    leaves: 4,
    lanes: 4,
    numerics_fingerprint: 'cpu-generic/1',
    spec_hash: documentHash(spec),
    parent: 'ckpt_before',
  });
  t.strictSame(parseManifest(encodeManifest(manifest)), manifest, 'and reads back');
  const other = { ...spec, train: { ...spec.train, seed: 5 }, data: { ...spec.data, seed: 6 } };
  t.match(buildManifest('job_1', save, { ...by, spec: other }), { seed: 5, data_seed: 6 });
});

t.test('lanes are those of the job; without them every leaf is a lane', async (t) => {
  const lanesOf = (lanes: number | null) =>
    buildManifest('job_1', save, {
      ...by,
      spec: { ...spec, zero: { ...spec.zero, lanes } as typeof spec.zero },
    }).lanes;
  t.equal(lanesOf(2), 2);
  t.equal(lanesOf(null), 4);
});

/** Returns an object store with one object and a list of results for its puts. */
function storeOf(puts: ('done' | 'reply lost' | 'away' | 'refused')[], there: Buffer | null = null) {
  const calls: unknown[] = [];
  let object = there;
  const put = async (key: string, bytes: Buffer, options: unknown) => {
    calls.push({ key, options });
    const next = puts.shift();
    if (next === 'away') throw new ObjectStoreError('object_store_unavailable', 'away');
    if (next === 'refused') throw new ObjectStoreError('invalid_argument', 'no');
    if (object !== null) throw new ObjectStoreError('precondition_failed', 'it exists');
    object = bytes;
    if (next === 'reply lost') throw new ObjectStoreError('object_store_unavailable', 'reply lost');
  };
  const objects = { put, get: async () => object } as unknown as ObjectStore;
  return { objects, calls, object: () => object };
}

const policy = { attempts: 3, first_delay_ms: 1, max_delay_ms: 1 };
const manifest = buildManifest('job_1', save, by);
const bytes = encodeManifest(manifest);
const put = ({ objects }: ReturnType<typeof storeOf>, signal = new AbortController().signal) =>
  putManifest(objects, 'dir', manifest, { policy, signal });

t.test('the manifest is put next to its shards, and only if none exists', async (t) => {
  const store = storeOf(['done']);
  await put(store);
  t.ok(store.object()?.equals(bytes));
  t.strictSame(store.calls, [
    { key: 'dir/MANIFEST.json', options: { createOnly: true, contentType: 'application/json' } },
  ]);
});

t.test('a put whose reply was lost succeeds', async (t) => {
  const store = storeOf(['reply lost', 'done']);
  await put(store);
  t.equal(store.calls.length, 2);
});

t.test('another manifest is not overwritten', async (t) => {
  const other = encodeManifest({ ...manifest, step: 8 });
  const store = storeOf([], other);
  await t.rejects(put(store), { code: 'precondition_failed' });
  t.ok(store.object()?.equals(other));
  t.equal(store.calls.length, 1, 'and not retried');
});

t.test('puts to an unavailable store are retried by the policy, and until the lease is lost', async (t) => {
  const store = storeOf(['away', 'away', 'done']);
  await put(store);
  t.ok(store.object());
  const unavailable = storeOf(['away', 'away', 'away', 'done']);
  await t.rejects(put(unavailable), { code: 'object_store_unavailable' });
  t.equal(unavailable.calls.length, 3);
  const lost = storeOf(['away', 'done']);
  await t.rejects(put(lost, AbortSignal.abort()), { code: 'object_store_unavailable' });
  t.equal(lost.calls.length, 1);
});

t.test('a refusal is final', async (t) => {
  const store = storeOf(['refused', 'done']);
  await t.rejects(put(store), { code: 'invalid_argument' });
  t.equal(store.calls.length, 1);
});
