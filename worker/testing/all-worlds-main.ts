/**
 * Program of a test of N → M with the native core: each number of ranks loads the checkpoints of each number of ranks.
 * It is a process of its own, because each rank blocks a thread of the pool while it connects, and the environment sets
 * the size of the pool. It sends its findings; the test checks them.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { checkpointDirectory, checkpointKey, MANIFEST_FILE } from '../../formats/checkpoint/layout.js';
import { encodeManifest, type Manifest, parseManifest } from '../../formats/checkpoint/manifest.js';
import { verifyShards } from '../../formats/checkpoint/verify.js';
import { resolveAdapter } from '../../job-document/index.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { buildManifest } from '../agent/checkpoint/commit.js';
import { nativeCore as core } from '../shared/native/adapter.js';
import { verifyLoadedRanges } from '../shared/verify-load.js';
import { TokenFileWriter } from '../tasks/data/token-file-writer.js';
import { CountingObjects } from './counting.js';
import { LocalWorld } from './local-ranks.js';
import { testSpec } from './start-message.js';

export type Finding =
  /** Digests at the saved step and at the last one. */
  | { kind: 'straight'; saved: string; last: string }
  | { kind: 'written'; writers: number; shards: number; digest: string }
  /** `amplification`: bytes read over the bytes of the shards; `after`: digest at the last step. */
  | {
      kind: 'loaded';
      writers: number;
      readers: number;
      digest: string;
      amplification: number;
      after: string;
    };

const [directory = '', most = '8', trained = 'whole'] = process.argv.slice(2);
const WORLDS = Array.from({ length: Number(most) }, (_, i) => i + 1);
const SAVED_STEP = 2;
const MORE_STEPS = 2;
const SEQUENCES = 64;

const spec = testSpec({ steps: SAVED_STEP + MORE_STEPS });
if (trained === 'adapter')
  spec.train.adapter = resolveAdapter(
    { type: 'dora', rank: 3, modules_to_save: ['norm'] },
    spec.model.config,
  ).adapter;
if (trained === 'whole') spec.train.ema = { decay: 0.5 };
// At least one sample for each rank.
Object.assign(spec.train, { micro_batch_size: 1, global_batch_size: WORLDS.length });
const { sequence_length } = spec.train;

const tokenFile = join(directory, 'tokens.bin');
const corpus = new TokenFileWriter(tokenFile, { token_bytes: 2, sequence_length });
corpus.append(
  Uint16Array.from({ length: SEQUENCES * sequence_length + 1 }, (_, i) => (i * i) % 251),
  null,
  true,
);
for (let sequence = 0; sequence < SEQUENCES; sequence++) corpus.sequence(sequence * sequence_length);
corpus.finish();
mkdirSync(join(directory, 'objects'));
const objects = await openObjectStore(pathToFileURL(join(directory, 'objects')).href);

function report(finding: Finding): Promise<void> {
  return new Promise((resolve, reject) =>
    process.send?.(finding, (error: Error | null) => (error ? reject(error) : resolve())),
  );
}

function start(worldSize: number, nonce = ''): Promise<LocalWorld> {
  return LocalWorld.start({
    core,
    spec,
    world_size: worldSize,
    job_id: 'job',
    nonce,
    training_files: [{ path: tokenFile, weight: 1, useful_share: 1 }],
  });
}

/** Trains to the end without a save. */
async function straight(): Promise<void> {
  const world = await start(1);
  await world.initialize();
  await world.train(SAVED_STEP);
  const saved = world.digest();
  await world.train(MORE_STEPS);
  await report({ kind: 'straight', saved, last: world.digest() });
  await world.close();
}

/** Trains from the beginning on `writers` ranks and saves. */
async function write(writers: number): Promise<{ directory: string; manifest: Manifest }> {
  const nonce = `of${writers}`;
  const world = await start(writers, nonce);
  await world.initialize();
  await world.train(SAVED_STEP);
  const save = await world.save(objects);
  const by = {
    spec,
    connected: world.connected,
    world_size: writers,
    epoch: 1,
    parent: null,
    data_digest: 'sha256:0',
    tokens_digest: 'sha256:0',
  };
  const bytes = encodeManifest(buildManifest('job', save, by));
  await world.close();
  const key = checkpointKey('job', checkpointDirectory({ step: SAVED_STEP, execution: '1-a', nonce }));
  await objects.put(`${key}/${MANIFEST_FILE}`, bytes);
  const manifest = parseManifest(bytes);
  await verifyShards(objects, key, manifest);
  await report({ kind: 'written', writers, shards: manifest.shards.length, digest: manifest.state_digest });
  return { directory: key, manifest };
}

/** Loads on `readers` ranks and continues the training. */
async function read(readers: number, checkpoint: Awaited<ReturnType<typeof write>>): Promise<void> {
  const { directory, manifest } = checkpoint;
  const counting = new CountingObjects(objects, '.safetensors');
  const world = await start(readers);
  const source = { kind: 'checkpoint', directory, restore: 'full', own: true } as const;
  const { digest, ranges } = await world.load(counting.objects, source);
  await verifyLoadedRanges(counting.objects, directory, manifest.shards, ranges);
  await world.train(MORE_STEPS);
  // A rank may own nothing, and its shard is not read.
  const wanted = manifest.shards.filter(({ bytes, data_begin }) => bytes > data_begin);
  const stored = wanted.reduce((sum, { bytes }) => sum + bytes, 0);
  await report({
    kind: 'loaded',
    writers: manifest.world_size,
    readers,
    digest,
    amplification: counting.bytes / stored,
    after: world.digest(),
  });
  await world.close();
}

await straight();
for (const writers of WORLDS) {
  const checkpoint = await write(writers);
  for (const readers of WORLDS) await read(readers, checkpoint);
}
await objects.close();
process.disconnect?.();
