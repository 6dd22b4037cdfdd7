import { createHash } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import type { StateName } from '../../../contracts/rank-protocol.js';
import { MANIFEST_FILE } from '../../../formats/checkpoint/layout.js';
import { encodeManifest, type Manifest } from '../../../formats/checkpoint/manifest.js';
import { parseSafetensorsHeader } from '../../../formats/safetensors/read-header.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { fakeCore } from '../../testing/fake-core.js';
import { testSpec } from '../../testing/start-message.js';
import { exportModel } from './export-model.js';

const DIRECTORY = 'jobs/job/checkpoints/000000009-1-a-test';
/** Larger than a checksum chunk, so that pieces are split and come from several shards. */
const SHAPE = [1300, 1000];
const NUMEL = SHAPE[0]! * SHAPE[1]!;
const WEIGHTS = Float32Array.from({ length: NUMEL }, (_, i) => ((i * 7919) % 65536) / 256 - 128);

/** Factor of the test's weights in each state of the checkpoint. */
const FACTORS: Partial<Record<StateName, number>> = { master: 1, ema: 0.5 };

/** Stores a checkpoint of one parameter, in two shards that alternate in buckets of its elements. */
async function setup(t: Test, dtype: 'bf16' | 'fp32', { optimizer_steps = 9, frozen = false } = {}) {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  const stored = await putTestCheckpoint(objects, DIRECTORY, {
    numels: [NUMEL],
    ranks: 2,
    sharding: { block_elements: 4096, bucket_blocks: 101, expert_sets: 1 },
    states: ['master', 'exp_avg', 'ema'],
    frozen: frozen ? [0] : [],
    value: (state, _, element) => (WEIGHTS[element] ?? 0) * (FACTORS[state] ?? 0),
  });
  const manifest: Manifest = {
    ...stored,
    step: 9,
    optimizer_steps,
    params: stored.params.map((param) => ({ ...param, name: 'w', shape: SHAPE })),
    state_digest: 'ab'.repeat(16),
  };
  await objects.put(`${DIRECTORY}/${MANIFEST_FILE}`, encodeManifest(manifest));
  const spec = testSpec();
  const retry = { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 };
  const objectStore = { url: objects.url, s3_endpoint: null };
  const request = {
    kind: 'export' as const,
    object_store: objectStore,
    format: 'safetensors' as const,
    dtype,
    weights: 'trained' as 'trained' | 'ema',
    prefix: 'jobs/job/exports/9',
    spec,
    checkpoint: DIRECTORY,
    retry,
  };
  return { objects, request };
}

async function exported(t: Test, dtype: 'bf16' | 'fp32') {
  const { objects, request } = await setup(t, dtype);
  const result = await exportModel(objects, fakeCore(), request);
  const file = await objects.get(`${result.prefix}/model.safetensors`);
  const header = parseSafetensorsHeader(file);
  const config = JSON.parse(String(await objects.get(`${result.prefix}/config.json`)));
  return { result, file, header, config, data: file.subarray(header.bytes) };
}

t.test('fp32 weights are the master weights, in order', async (t) => {
  const { header, data, config } = await exported(t, 'fp32');
  t.strictSame(header.tensors, [{ name: 'w', dtype: 'F32', shape: SHAPE, begin: 0, end: NUMEL * 4 }]);
  t.strictSame(header.metadata, { format: 'pt' });
  t.ok(data.equals(Buffer.from(WEIGHTS.buffer)));
  t.equal(config.torch_dtype, 'float32');
});

t.test('bf16 weights are cast piece by piece', async (t) => {
  const { header, data, config } = await exported(t, 'bf16');
  t.strictSame(header.tensors, [{ name: 'w', dtype: 'BF16', shape: SHAPE, begin: 0, end: NUMEL * 2 }]);
  const expected = fakeCore().castTo16Bit('bf16', new Uint8Array(WEIGHTS.buffer));
  t.ok(data.equals(expected));
  t.match(config, {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_size: 32,
    torch_dtype: 'bfloat16',
  });
});

t.test('the average of the weights, where there is one', async (t) => {
  const average = WEIGHTS.map((value) => value / 2);
  for (const [shape, expected] of [
    [{}, average],
    [{ frozen: true }, WEIGHTS],
    [{ optimizer_steps: 0 }, WEIGHTS],
  ] as const) {
    const { objects, request } = await setup(t, 'fp32', shape);
    const { prefix } = await exportModel(objects, fakeCore(), { ...request, weights: 'ema' });
    const file = await objects.get(`${prefix}/model.safetensors`);
    const { bytes } = parseSafetensorsHeader(file);
    t.ok(file.subarray(bytes).equals(Buffer.from(expected.buffer)), JSON.stringify(shape));
  }
});

t.test('the result lists every file with its size and hash', async (t) => {
  const { result, file } = await exported(t, 'bf16');
  t.match(result, { prefix: 'jobs/job/exports/9', state_digest: 'ab'.repeat(16) });
  t.strictSame(
    result.files.map(({ name }) => name),
    ['config.json', 'model.safetensors'],
  );
  const sha256 = createHash('sha256').update(file).digest('hex');
  t.strictSame(result.files[1], { name: 'model.safetensors', bytes: file.length, sha256 });
});

t.test('a damaged shard is not exported', async (t) => {
  const { objects, request } = await setup(t, 'bf16');
  const shard = await objects.get(`${DIRECTORY}/shard-1.safetensors`);
  shard[100]! ^= 1;
  await objects.put(`${DIRECTORY}/shard-1.safetensors`, shard);
  await t.rejects(exportModel(objects, fakeCore(), request), { code: 'shard_corrupt' });
  t.equal(await objects.head('jobs/job/exports/9/model.safetensors'), null);
});
