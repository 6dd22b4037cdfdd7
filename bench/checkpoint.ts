/**
 * Cost of checkpoints: `npm run bench -- checkpoint --config gpt2 --interval 20`. One run prints, one line each:
 * - `stall`: training stall of a save to a directory, and its share of the steps between two saves;
 * - `throughput`: MB/s of saving and of loading the whole state, to a directory and to S3 (Ceph's radosgw on loopback,
 *   all in memory). It is compared with a client that transfers as many bytes in pieces of 8 MiB, four at once, without
 *   hashing or verification;
 * - `recovery` (not with `--no-recovery`): from SIGKILL of a rank of a running job to the end of its first new step.
 */
import { randomFillSync } from 'node:crypto';
import { checkpointKey, MANIFEST_FILE } from '../formats/checkpoint/layout.js';
import { encodeManifest } from '../formats/checkpoint/manifest.js';
import { architectureOf, presets } from '../job-document/index.js';
import { buildManifest } from '../worker/agent/checkpoint/commit.js';
import { nativeCore } from '../worker/shared/native/adapter.js';
import { verifyLoadedRanges } from '../worker/shared/verify-load.js';
import { LocalWorld } from '../worker/testing/local-ranks.js';
import { testSpec } from '../worker/testing/start-message.js';
import { directoryStore, type MeasuredStore, s3Store } from './checkpoint-stores.js';
import { benchOptions, count, oneOf, onOff } from './options.js';
import { measureRecovery } from './recovery.js';
import { median, report } from './report.js';
import { configs, LEAVES_PER_STEP, numParams, shapeOf, withRandomTokens } from './training.js';

const PIECE_BYTES = 8 * 1024 * 1024;
const WARMUP_STEPS = 2;
/** The master weight and Adam's two moments. */
const BYTES_PER_PARAM = 12;

const { config, interval, saves, threads, repeats, no_recovery } = benchOptions({
  config: oneOf(configs, 'llama-tiny'),
  interval: count(20),
  saves: count(3),
  threads: count(2),
  repeats: count(3),
  no_recovery: onOff(),
});

/** A one-rank job of the configuration, with the shapes of the other benchmarks. */
function specOf() {
  const spec = testSpec({ steps: WARMUP_STEPS + interval * saves + 1 });
  const { sequence_length, micro_batch_size } = shapeOf(config);
  spec.model.config = presets[config];
  const globalBatchSize = micro_batch_size * LEAVES_PER_STEP;
  Object.assign(spec.train, { sequence_length, micro_batch_size, global_batch_size: globalBatchSize });
  return spec;
}

async function startWorld(tokenFile: string): Promise<LocalWorld> {
  const world = await LocalWorld.start({
    core: nativeCore,
    spec: specOf(),
    world_size: 1,
    threads,
    training_files: [{ path: tokenFile, weight: 1, useful_share: 1 }],
  });
  await world.initialize();
  return world;
}

/** Trains with a save every `interval` steps; each save is written during the following steps. */
async function measureStall(world: LocalWorld, objects: MeasuredStore['objects']) {
  await world.prepareSnapshots();
  await world.train(WARMUP_STEPS);
  const stalls: number[] = [];
  const began = performance.now();
  const travelling: Promise<unknown>[] = [];
  for (let save = 0; save < saves; save++) {
    await world.train(interval);
    const { stalled, stored } = await world.snapshotTo(objects);
    stalls.push(stalled);
    travelling.push(stored);
  }
  const seconds = (performance.now() - began) / 1000;
  await Promise.all(travelling);
  const stepSeconds = (seconds - sum(stalls)) / (saves * interval);
  const stall = median(stalls);
  report('checkpoint', {
    what: 'stall',
    config,
    interval,
    threads,
    stall_ms: round(stall * 1000),
    step_ms: round(stepSeconds * 1000),
    share_of_steps: round(stall / (stall + interval * stepSeconds), 5),
    saves: stalls.map((value) => round(value * 1000)),
  });
}

async function measureThroughput(world: LocalWorld, store: MeasuredStore) {
  const bytes = BYTES_PER_PARAM * numParams(architectureOf(presets[config]));
  const pieces = piecesOf(bytes);
  const rates: Record<keyof Repetition, number[]> = { save: [], raw_write: [], load: [], raw_read: [] };
  // The first round is not counted: the first writer waits for memory that the virtual machine gets from its host.
  for (let repetition = 0; repetition <= repeats; repetition++) {
    const seconds = await measureRepetition(world, store, { pieces, raw_first: repetition % 2 === 0 });
    if (repetition > 0) for (const [name, list] of typedEntries(rates)) list.push(bytes / seconds[name]);
  }
  const mb = (values: number[]) => round(median(values) / 1e6);
  report('checkpoint', {
    what: 'throughput',
    store: store.name,
    config,
    bytes,
    save_mb_per_s: mb(rates.save),
    raw_write_mb_per_s: mb(rates.raw_write),
    save_share: round(median(rates.save) / median(rates.raw_write), 3),
    load_mb_per_s: mb(rates.load),
    raw_read_mb_per_s: mb(rates.raw_read),
    load_share: round(median(rates.load) / median(rates.raw_read), 3),
    repeats,
    repetitions: Object.fromEntries(
      typedEntries(rates).map(([name, list]) => [name, list.map((rate) => Math.round(rate / 1e6))]),
    ),
  });
}

/** Seconds of each client in one round. */
interface Repetition {
  save: number;
  raw_write: number;
  load: number;
  raw_read: number;
}

/**
 * Writes and reads everything once with both clients, in either order. Each starts with an empty store: pages that a
 * virtual machine has never used cost several times the write, and only the second client would get them. Both read
 * from the disk: a save leaves nothing in the page cache.
 */
async function measureRepetition(
  world: LocalWorld,
  store: MeasuredStore,
  { pieces, raw_first }: { pieces: readonly Uint8Array[]; raw_first: boolean },
): Promise<Repetition> {
  const raw = async () => {
    const rawWrite = await timed(() => store.rawWrite(pieces));
    await store.forget();
    const rawRead = await timed(() => store.rawRead(pieces));
    await store.clear();
    return { raw_write: rawWrite, raw_read: rawRead };
  };
  const before = raw_first ? await raw() : null;
  const ours = await saveAndLoad(world, store);
  await store.clear();
  return { ...ours, ...(before ?? (await raw())) };
}

async function saveAndLoad(
  world: LocalWorld,
  { objects, forget }: MeasuredStore,
): Promise<{ save: number; load: number }> {
  const began = performance.now();
  const stored = await world.save(objects);
  const save = secondsSince(began);
  const by = {
    spec: specOf(),
    connected: world.connected,
    world_size: 1,
    epoch: 1,
    parent: null,
    data_digest: 'sha256:0',
    tokens_digest: 'sha256:0',
  };
  const manifest = buildManifest(world.jobId, stored, by);
  const directory = checkpointKey(world.jobId, stored.directory);
  await objects.put(`${directory}/${MANIFEST_FILE}`, encodeManifest(manifest));
  await forget();
  const load = await timed(async () => {
    const source = { kind: 'checkpoint', directory, restore: 'full', own: true } as const;
    const { ranges } = await world.load(objects, source);
    await verifyLoadedRanges(objects, directory, manifest.shards, ranges);
  });
  return { save, load };
}

/** Random bytes in pieces. */
function piecesOf(bytes: number): Uint8Array[] {
  const piece = randomFillSync(new Uint8Array(PIECE_BYTES));
  return Array.from({ length: Math.ceil(bytes / PIECE_BYTES) }, (_, i) =>
    piece.subarray(0, Math.min(PIECE_BYTES, bytes - i * PIECE_BYTES)),
  );
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return secondsSince(began);
}

const typedEntries = <Key extends string, Value>(record: Record<Key, Value>) =>
  Object.entries(record) as [Key, Value][];
const secondsSince = (began: number) => (performance.now() - began) / 1000;
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const round = (value: number, digits = 1) => Number(value.toFixed(digits));

await withRandomTokens({ config }, async (tokenFile) => {
  const world = await startWorld(tokenFile);
  const directory = await directoryStore();
  await measureStall(world, directory.objects);
  await measureThroughput(world, directory);
  await directory.close();
  // The state and as many raw bytes exist at the same time.
  const s3 = await s3Store(2 * BYTES_PER_PARAM * numParams(architectureOf(presets[config])));
  if (typeof s3 === 'string') {
    report('checkpoint', { what: 'throughput', store: 's3 (radosgw)', not_measured: s3 });
  } else {
    await measureThroughput(world, s3);
    await s3.close();
  }
  await world.close();
});
if (!no_recovery) report('checkpoint', { what: 'recovery', ...(await measureRecovery(repeats)) });
