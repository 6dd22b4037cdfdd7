/**
 * Tests of the manifest size of large jobs and of the time to plan a rank's reads, without weights, by the code that
 * saves and loads.
 */
import { createHash } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import t from 'tap';
import type { TrainableJobSpec } from '../../../contracts/index.js';
import { shardingOf } from '../../../contracts/shard-layout.js';
import { shardName } from '../../../formats/checkpoint/layout.js';
import { CHUNK_BYTES, encodeManifest, parseManifest } from '../../../formats/checkpoint/manifest.js';
import { planReads } from '../../../formats/checkpoint/read-plan.js';
import { ShardContents } from '../../../formats/checkpoint/shard-contents.js';
import { ADAM_STATES } from '../../../formats/testing/checkpoints.js';
import { architectureOf, modelParams } from '../../../job-document/index.js';
import { CREATE_ONLY_MAX_BYTES } from '../../../platform/object-store/common/port.js';
import { planFetches } from '../../rank/load/chunks.js';
import { trainedState } from '../../rank/trained-state.js';
import { trainerConfig } from '../../rank/trainer-config.js';
import type { NativeCore } from '../../shared/native/adapter.js';
import { startMessage, testSpec } from '../../testing/start-message.js';
import { buildManifest } from './commit.js';
import type { CompleteSave } from './save-collector.js';

const MIB = 2 ** 20;
/** Longer than the header of any of these jobs. */
const HEADER_BYTES = 512 * 1024;

/** Configurations of Llama 2 with 7 and 13 billion parameters, and of Llama 3 with 70. */
const SHAPES = {
  '7B': {
    hidden_size: 4096,
    intermediate_size: 11008,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 32,
    vocab_size: 32000,
  },
  '13B': {
    hidden_size: 5120,
    intermediate_size: 13824,
    num_hidden_layers: 40,
    num_attention_heads: 40,
    num_key_value_heads: 40,
    vocab_size: 32000,
  },
  '70B': {
    hidden_size: 8192,
    intermediate_size: 28672,
    num_hidden_layers: 80,
    num_attention_heads: 64,
    num_key_value_heads: 8,
    vocab_size: 128256,
  },
};

function specOf(model: keyof typeof SHAPES, bucketBytes = 16 * MIB): TrainableJobSpec {
  const spec = testSpec();
  Object.assign(spec.model, {
    config: { ...spec.model.config, ...SHAPES[model], head_dim: 128, tie_word_embeddings: false },
  });
  Object.assign(spec.zero, { bucket_bytes: bucketBytes });
  return spec;
}

/** Returns the state of a job as the native core reports it, from its spec alone. */
function stateOf(spec: TrainableJobSpec) {
  const core = {
    paramTable: () =>
      modelParams(architectureOf(spec.model.config)).map(({ decays, frozen: base, ...param }) => ({
        ...param,
        base,
        group: decays ? 'decay' : 'no_decay',
      })),
    stateNames: () => [...ADAM_STATES],
    sharding: shardingOf,
  } as unknown as NativeCore;
  return trainedState(core, trainerConfig(startMessage({ spec })), spec);
}

/** Returns pseudorandom digits, which do not compress. */
const digits = (prefix: string, count: number) => {
  let text = '';
  for (let i = 0; text.length < count; i += 1)
    text += createHash('sha512').update(`${prefix}/${i}`).digest('hex');
  return text.slice(0, count);
};

/** Returns the manifest of a job's save with made-up checksums. */
function manifestOf(spec: TrainableJobSpec, worldSize: number) {
  const { params, states, sharding } = stateOf(spec);
  const shards = new ShardContents({ params, states, sharding, world_size: worldSize })
    .dataBytes()
    .map((data, rank) => {
      const bytes = HEADER_BYTES + data;
      const file = shardName(rank, worldSize);
      const crc32c = digits(file, 8 * Math.ceil(bytes / CHUNK_BYTES));
      return { file, bytes, data_begin: HEADER_BYTES, sha256: digits(`${file} whole`, 64), crc32c };
    });
  const save: CompleteSave = {
    directory: 'x',
    step: 1000,
    optimizer_steps: 1000,
    skipped_steps: 0,
    eval_losses: { validation: 2.5 },
    early_stopping: null,
    calls: null,
    reference: null,
    loss_scaler: {
      scale: 1,
      iteration: 1000,
      last_overflow_iteration: -1,
      hysteresis: 1,
      skipped_in_a_row: 0,
    },
    shards,
    base_digest_parts: null,
    digest_parts: shards.map(({ file }) => digits(`${file} digest`, 32)),
    save_request: 0,
    cost: { stall_seconds: 0, write_seconds: 0 },
  };
  const numericsFingerprint = 'cpu-generic/1';
  return buildManifest('job_1', save, {
    spec,
    connected: {
      kind: 'connected',
      params: [...params],
      states: [...states],
      sharding,
      numerics_fingerprint: numericsFingerprint,
    },
    world_size: worldSize,
    epoch: 1,
    parent: null,
    data_digest: 'sha256:0',
    tokens_digest: 'sha256:0',
  });
}

for (const [name, spec, worldSize, atMost] of [
  ['7 B on 16 ranks, the smallest buckets', specOf('7B', 16384), 16, 1],
  ['13 B on 128 ranks', specOf('13B'), 128, 1],
  ['70 B on 512 ranks', specOf('70B'), 512, 4],
  ['70 B on 4096 ranks, the smallest buckets', specOf('70B', 16384), 4096, 4],
] as const) {
  t.test(`${name}: the manifest has less than ${atMost} MiB and reads back`, async (t) => {
    const manifest = manifestOf(spec, worldSize);
    const elements = manifest.params.reduce((sum, { numel }) => sum + numel, 0);
    const stored = manifest.shards.reduce((sum, { bytes, data_begin }) => sum + bytes - data_begin, 0);
    t.equal(stored, elements * 4 * 3);
    const encoded = encodeManifest(manifest);
    t.comment(`${(elements / 1e9).toFixed(2)} B parameters: ${(encoded.length / MIB).toFixed(2)} MiB`);
    t.ok(encoded.length < atMost * MIB);
    t.ok(encoded.length < CREATE_ONLY_MAX_BYTES, 'within the limit of a conditional put');
    t.strictSame(parseManifest(encoded), manifest);
  });
}

t.test("70 B from 512 to 384 ranks: planning one rank's reads does not block the event loop", async (t) => {
  const spec = specOf('70B');
  const manifest = manifestOf(spec, 512);
  const { params, states, sharding } = stateOf(spec);
  const mine = new ShardContents({ params, states, sharding, world_size: 384 });
  const rank = 200;
  const slices = Array.from(mine.stretches(rank)).flatMap(({ state, param, begin, end }) =>
    state === 'master' ? [{ param: params[param]?.name ?? '', begin, end }] : [],
  );
  let turns = 0;
  let planned = false;
  const others = () => {
    turns += 1;
    if (!planned) setImmediate(others);
  };
  setImmediate(others);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const { user } = process.cpuUsage();
  const reads = await planReads(manifest, { states, slices });
  planned = true;
  delay.disable();
  let bytes = 0;
  let fetches = 0;
  for (const { begin, end } of planFetches(reads)) {
    bytes += end - begin;
    fetches += 1;
  }
  const spentMs = (process.cpuUsage().user - user) / 1000;
  t.comment(
    `${slices.length} stretches, ${fetches} requests, ${spentMs.toFixed()} ms, ${delay.max / 1e6} ms at once`,
  );
  t.equal(bytes, mine.dataBytes()[rank], "all bytes of the rank's new shard, and no others");
  t.ok(turns > slices.length / 1000, 'other callbacks ran');
});
