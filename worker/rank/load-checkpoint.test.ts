import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { ShardMessage } from '../../contracts/rank-protocol.js';
import { resolveOptimizer } from '../../contracts/resolve-spec/optimizer.js';
import { sumDigests } from '../../platform/checkpoint/digest.js';
import { checkpointDirectory, checkpointKey, MANIFEST_FILE } from '../../platform/checkpoint/layout.js';
import { parseManifest } from '../../platform/checkpoint/manifest.js';
import { verifyShards } from '../../platform/checkpoint/verify.js';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import { parseSafetensorsHeader } from '../../platform/safetensors/read-header.js';
import { buildManifest } from '../checkpoint/commit.js';
import { verifyLoadedRanges } from '../checkpoint/verify-load.js';
import type { RankTrainer, TrainerConfig } from '../native/adapter.js';
import { fakeCore } from '../testing/fake-core.js';
import { fakeStateDigest } from '../testing/fake-state.js';
import { startMessage, testSpec } from '../testing/start-message.js';
import { loadCheckpoint } from './load-checkpoint.js';
import { positionAfterLoad } from './position.js';
import { SnapshotWriter } from './snapshot-writer.js';
import { trainedState } from './trained-state.js';
import { trainerConfig } from './trainer-config.js';

const STEP = 3;
const core = fakeCore({ step_ms: 0 });
const retry = { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 };
const directory = checkpointKey('job', checkpointDirectory({ step: STEP, epoch: 1, nonce: 'test' }));

const source = { kind: 'checkpoint' as const, directory, restore: 'full' as const, own: true };

/** A job with this optimizer and some of its parameters frozen. */
function specOf(type: TrainerConfig['optimizer']['type'] = 'adamw', frozen: string[] = []): ResolvedJobSpec {
  const spec = testSpec();
  const param_groups = frozen.map((match) => ({ match, frozen: true }));
  spec.train.optimizer = resolveOptimizer({ type, param_groups });
  return spec;
}

const stateOf = (spec: ResolvedJobSpec) => trainedState(core, trainerConfig(startMessage({ spec })), spec);

/** Ranks of one world in this process, with their rendezvous between them. */
function world(spec: ResolvedJobSpec, world_size: number): { trainer: RankTrainer; config: TrainerConfig }[] {
  const ranks: { trainer: RankTrainer; config: TrainerConfig }[] = [];
  const relay = (key: string, value: Uint8Array) => {
    for (const { trainer } of ranks) trainer.deliver(key, value);
  };
  for (let rank = 0; rank < world_size; rank++) {
    const config = trainerConfig(startMessage({ rank, world_size, spec }));
    ranks.push({ config, trainer: core.createTrainer(config, relay) });
  }
  return ranks;
}

/** Trains `STEP` steps on `world_size` ranks and saves them as a checkpoint. */
async function save(objects: ObjectStore, world_size: number, spec = specOf()) {
  const { params, states } = stateOf(spec);
  const reports = await Promise.all(
    world(spec, world_size).map(async ({ trainer, config }) => {
      await trainer.initialize();
      for (let step = 0; step < STEP; step++) await trainer.step(0);
      const sent: ShardMessage[] = [];
      const start = startMessage({ job_id: 'job', rank: config.rank, world_size, nonce: 'test' });
      const send = async (message: unknown) => void sent.push(message as ShardMessage);
      const writer = new SnapshotWriter({ objects, start, params, send });
      await writer.save(trainer, retry);
      await writer.idle();
      return sent[0]!;
    }),
  );
  const job = { id: 'job', spec } as Parameters<typeof buildManifest>[0];
  const shards = reports.map(({ shard }) => shard);
  const digest_parts = reports.map(({ digest_part }) => digest_part);
  const connected = {
    kind: 'connected' as const,
    params: [...params],
    states: [...states],
    numerics_fingerprint: 'fake/1',
  };
  const by = { connected, world_size, epoch: 1, parent: null, data_digest: 'sha256:0' };
  const manifest = buildManifest(job, { ...reports[0]!.save, shards, digest_parts }, by);
  await objects.put(`${directory}/${MANIFEST_FILE}`, Buffer.from(JSON.stringify(manifest)));
  return parseManifest(Buffer.from(JSON.stringify(manifest)));
}

async function load(objects: ObjectStore, world_size: number, spec = specOf()) {
  const state = stateOf(spec);
  const ranks = world(spec, world_size);
  const parts = await Promise.all(
    ranks.map(({ trainer }) => loadCheckpoint({ objects, source, trainer, state, retry })),
  );
  const at = positionAfterLoad(parts[0]!.manifest, source, spec.train.loss_scale);
  await Promise.all(ranks.map(({ trainer }) => trainer.finishLoad({ ...at, restore: 'full' })));
  const digest = sumDigests(ranks.map(({ trainer }) => trainer.digestPart()));
  return { digest, at, ranges: parts.flatMap((part) => part.ranges) };
}

async function store(t: Test): Promise<ObjectStore> {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  return objects;
}

for (const type of ['adamw', 'adam', 'lamb', 'lion', 'adagrad', 'sgd'] as const) {
  t.test(`what N ranks wrote is what M ranks read, each byte once: ${type}`, async (t) => {
    const frozen = ['model.embed_tokens.weight'];
    const spec = specOf(type, frozen);
    const { params, states } = stateOf(spec);
    const state_bytes = params.reduce(
      (sum, { name, numel }) => sum + numel * 4 * (frozen.includes(name) ? 1 : states.length),
      0,
    );
    const expected = fakeStateDigest(1, STEP, trainerConfig(startMessage({ spec })));
    for (const writers of [1, 2, 3, 4]) {
      const objects = await store(t);
      const manifest = await save(objects, writers, spec);
      t.equal(manifest.state_digest, expected, `${writers} wrote the state`);
      t.match(manifest, { optimizer: type, states, params });
      await t.resolves(verifyShards(objects, directory, manifest));
      for (const readers of [1, 2, 3, 4]) {
        const { digest, at, ranges } = await load(objects, readers, spec);
        t.equal(digest, manifest.state_digest, `${writers} → ${readers}`);
        t.match(at, { step: STEP, optimizer_steps: STEP, skipped_steps: 0 });
        t.equal(
          ranges.reduce((sum, { begin, end }) => sum + end - begin, 0),
          state_bytes,
        );
        await t.resolves(verifyLoadedRanges(objects, directory, manifest.shards, ranges));
      }
    }
  });
}

t.test(
  'a checkpoint of another optimizer, or with others frozen, is refused before anything is read',
  async (t) => {
    const objects = await store(t);
    await save(objects, 2);
    const refused = { code: 'checkpoint_mismatch' };
    await t.rejects(load(objects, 3, specOf('lamb')), refused);
    await t.rejects(load(objects, 3, specOf('lion')), refused);
    await t.rejects(load(objects, 3, specOf('adamw', ['lm_head.weight'])), refused);
  },
);

t.test('a byte that changed is found wherever it is', async (t) => {
  const objects = await store(t);
  const manifest = await save(objects, 2);
  const key = `${directory}/${manifest.shards[1]!.file}`;
  const good = await objects.get(key);
  for (const at of [0, 40, Math.floor(good.length / 2), good.length - 1]) {
    const bad = Buffer.from(good);
    bad[at]! ^= 4;
    await objects.put(key, bad);
    const { ranges } = await load(objects, 3);
    await t.rejects(verifyLoadedRanges(objects, directory, manifest.shards, ranges), {
      code: 'shard_corrupt',
    });
  }
});

t.test('a shard that is too short, or gone, is an error', async (t) => {
  const objects = await store(t);
  const manifest = await save(objects, 2);
  const key = `${directory}/${manifest.shards[0]!.file}`;
  await objects.put(key, (await objects.get(key)).subarray(0, -8));
  await t.rejects(load(objects, 1), { code: 'invalid_range' });
  await objects.delete([key]);
  await t.rejects(load(objects, 1), { code: 'object_not_found' });
});

t.test('a shard is a plain safetensors file that says which elements it holds', async (t) => {
  const objects = await store(t);
  const manifest = await save(objects, 3);
  for (const shard of manifest.shards) {
    const header = parseSafetensorsHeader(await objects.get(`${directory}/${shard.file}`));
    t.strictSame(
      header.tensors.map(({ name, begin, end }) => [
        name.split('#')[0],
        header.metadata[name],
        begin + header.bytes,
        end + header.bytes,
      ]),
      shard.tensors.map((tensor) => [
        `${tensor.state}/${tensor.param}`,
        `${tensor.element_begin}:${tensor.element_end}`,
        tensor.byte_begin,
        tensor.byte_end,
      ]),
    );
  }
});
