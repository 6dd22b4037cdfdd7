import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import type { TrainableJobSpec } from '../../../contracts/index.js';
import { checkpointDirectory, checkpointKey, MANIFEST_FILE } from '../../../formats/checkpoint/layout.js';
import { encodeManifest, parseManifest } from '../../../formats/checkpoint/manifest.js';
import { verifyShards } from '../../../formats/checkpoint/verify.js';
import { parseSafetensorsHeader } from '../../../formats/safetensors/read-header.js';
import { OPTIMIZER_TYPES, resolveOptimizer } from '../../../job-document/index.js';
import { type ObjectStore, openObjectStore } from '../../../platform/object-store/index.js';
import { buildManifest } from '../../agent/checkpoint/commit.js';
import type { TrainerConfig } from '../../shared/native/adapter.js';
import { verifyLoadedRanges } from '../../shared/verify-load.js';
import { CountingObjects } from '../../testing/counting.js';
import { fakeCore } from '../../testing/fake-core.js';
import { fakeStateDigest } from '../../testing/fake-state.js';
import { LocalWorld } from '../../testing/local-ranks.js';
import { startMessage, testSpec } from '../../testing/start-message.js';
import { trainedState } from '../trained-state.js';
import { trainerConfig } from '../trainer-config.js';

const STEP = 3;
const ALL_WORLDS = [1, 2, 3, 4, 5, 6, 7, 8];
/** For optimizers that differ from the first only in their states. */
const SOME_WORLDS = [1, 3, 8];
const core = fakeCore();
const directory = checkpointKey('job', checkpointDirectory({ step: STEP, execution: '1-a', nonce: 'test' }));

const source = { kind: 'checkpoint' as const, directory, restore: 'full' as const, own: true };

/** Returns the spec of a job with this optimizer and some frozen parameters. */
function specOf(type: TrainerConfig['optimizer']['type'] = 'adamw', frozen: string[] = []): TrainableJobSpec {
  const spec = testSpec();
  const paramGroups = frozen.map((match) => ({ match, frozen: true }));
  spec.train.optimizer = resolveOptimizer({ type, param_groups: paramGroups });
  return spec;
}

const stateOf = (spec: TrainableJobSpec) => trainedState(core, trainerConfig(startMessage({ spec })), spec);

/** Trains `STEP` steps on `world_size` ranks and saves them as a checkpoint. */
async function save(objects: ObjectStore, worldSize: number, spec = specOf()) {
  const world = await LocalWorld.start({ core, spec, world_size: worldSize, job_id: 'job', nonce: 'test' });
  await world.initialize();
  await world.train(STEP);
  const complete = await world.save(objects);
  const by = {
    spec,
    connected: world.connected,
    world_size: worldSize,
    epoch: 1,
    parent: null,
    data_digest: 'sha256:0',
    tokens_digest: 'sha256:0',
  };
  const bytes = encodeManifest(buildManifest('job', complete, by));
  await objects.put(`${directory}/${MANIFEST_FILE}`, bytes);
  return parseManifest(bytes);
}

async function load(objects: ObjectStore, worldSize: number, spec = specOf()) {
  return (await LocalWorld.start({ core, spec, world_size: worldSize })).load(objects, source);
}

async function store(t: Test): Promise<ObjectStore> {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  return objects;
}

for (const type of OPTIMIZER_TYPES) {
  t.test(`M ranks read the checkpoint of N ranks, each byte once: ${type}`, async (t) => {
    const frozen = ['model.embed_tokens.weight'];
    const spec = specOf(type, frozen);
    const { params, states } = stateOf(spec);
    const stateBytes = params.reduce(
      (sum, { name, numel }) => sum + numel * 4 * (frozen.includes(name) ? 1 : states.length),
      0,
    );
    const expected = fakeStateDigest(1, STEP, trainerConfig(startMessage({ spec })));
    const worlds = type === 'adamw' ? ALL_WORLDS : SOME_WORLDS;
    for (const writers of worlds) {
      const objects = await store(t);
      const manifest = await save(objects, writers, spec);
      t.equal(manifest.state_digest, expected, `${writers} wrote the state`);
      t.match(manifest, { optimizer: type, states, params });
      await t.resolves(verifyShards(objects, directory, manifest));
      // A rank may own nothing, and its shard is not read.
      const wanted = manifest.shards.filter(({ bytes, data_begin }) => bytes > data_begin);
      const stored = wanted.reduce((sum, { bytes }) => sum + bytes, 0);
      for (const readers of worlds) {
        const counting = new CountingObjects(objects, '.safetensors');
        const { digest, at, ranges } = await load(counting.objects, readers, spec);
        t.equal(digest, manifest.state_digest, `${writers} → ${readers}`);
        t.match(at, { step: STEP, optimizer_steps: STEP, skipped_steps: 0 });
        t.equal(
          ranges.reduce((sum, { begin, end }) => sum + end - begin, 0),
          stateBytes,
        );
        t.equal(counting.bytes, stateBytes, 'no other byte was requested');
        await t.resolves(verifyLoadedRanges(counting.objects, directory, manifest.shards, ranges));
        t.equal(
          counting.bytes / stored,
          1,
          'with the headers, which the agent reads, each byte of the shards once',
        );
      }
    }
  });
}

t.test(
  'a checkpoint with another optimizer or other frozen parameters is refused before its shards are read',
  async (t) => {
    const objects = await store(t);
    await save(objects, 2);
    const refused = { code: 'checkpoint_mismatch' };
    await t.rejects(load(objects, 3, specOf('lamb')), refused);
    await t.rejects(load(objects, 3, specOf('lion')), refused);
    await t.rejects(load(objects, 3, specOf('adamw', ['lm_head.weight'])), refused);
  },
);

t.test('a shard is a plain safetensors file with one tensor per state and parameter', async (t) => {
  const objects = await store(t);
  const manifest = await save(objects, 3);
  const elements = new Map<string, number>();
  for (const { file, bytes, data_begin } of manifest.shards) {
    const content = await objects.get(`${directory}/${file}`);
    const { tensors, bytes: headerBytes } = parseSafetensorsHeader(content, { name: file, bytes });
    t.equal(headerBytes, data_begin);
    for (const { name, shape, dtype } of tensors) {
      t.equal(dtype, 'F32');
      elements.set(name, (elements.get(name) ?? 0) + (shape[0] ?? 0));
    }
  }
  const whole = manifest.params.flatMap(({ name, numel }) =>
    manifest.states.map((state) => [`${state}/${name}`, numel] as const),
  );
  t.strictSame(Object.fromEntries(elements), Object.fromEntries(whole));
});

t.test('a rank whose core owns other elements than the layout stores nothing', async (t) => {
  const objects = await store(t);
  const wrong = { block_elements: 16, bucket_blocks: 5, expert_sets: 1 };
  const other = { ...core, sharding: () => wrong };
  const world = await LocalWorld.start({ core: other, spec: specOf(), world_size: 3, job_id: 'job' });
  await world.initialize();
  await t.rejects(world.save(objects), { message: /owns elements .*, expected/ });
  const keys: string[] = [];
  for await (const { key } of objects.list('')) keys.push(key);
  t.ok(keys.length < 3, 'no complete save');
});
