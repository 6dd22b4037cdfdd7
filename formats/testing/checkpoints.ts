import { createHash } from 'node:crypto';
import type { Sharding, StateName } from '../../contracts/rank-protocol.js';
import { STATE_NAMES } from '../../contracts/state-records.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { MANIFEST_FILE } from '../checkpoint/layout.js';
import { encodeManifest, FORMAT_VERSION, type Manifest, type ManifestShard } from '../checkpoint/manifest.js';
import { statesOf } from '../checkpoint/shard-contents.js';
import { ChunkChecksums } from '../checkpoint/verify.js';

/** Length of a dummy header: readers of a checkpoint use the manifest only. */
const HEADER_BYTES = 64;

export interface TestCheckpointShape {
  /** Elements of each parameter `p0`, `p1`, … */
  numels: readonly number[];
  /** Number of writing ranks. */
  ranks: number;
  sharding?: Sharding;
  /** States of the optimizer; AdamW's by default. */
  states?: readonly StateName[];
  /** Numbers of the frozen parameters. */
  frozen?: readonly number[];
  /** Value of an element; its own number by default. */
  value?: (state: StateName, param: number, element: number) => number;
  /** Expert sets by number of the parameter, for parameters not shared by all ranks. */
  expert_sets?: Readonly<Record<number, number>>;
}

/** Small enough that a rank owns several stretches of a parameter. */
const SHARDING: Sharding = { block_elements: 4, bucket_blocks: 7, expert_sets: 1 };

/** States of AdamW, Adam and LAMB. */
export const ADAM_STATES: readonly StateName[] = ['master', 'exp_avg', 'exp_avg_sq'];

/** Returns the parameters of such a checkpoint. */
export function testParams({
  numels,
  frozen = [],
  expert_sets = {},
}: Omit<TestCheckpointShape, 'ranks'>): Manifest['params'] {
  return numels.map((numel, i) => ({
    name: `p${i}`,
    shape: [numel],
    numel,
    group: 'decay',
    frozen: frozen.includes(i),
    base: false,
    expert_set: expert_sets[i] ?? null,
  }));
}

/** Returns a consistent manifest of a checkpoint in which the value of every element is its own number. */
export function testManifest(shape: TestCheckpointShape): Manifest {
  const shards = testShards(shape).map(({ shard }) => shard);
  return {
    format_version: FORMAT_VERSION,
    id: 'ckpt_test',
    job_id: 'job_test',
    step: 10,
    optimizer_steps: 10,
    skipped_steps: 0,
    world_size: shards.length,
    epoch: 1,
    params: testParams(shape),
    optimizer: 'adamw',
    states: [...(shape.states ?? ADAM_STATES)],
    sharding: shape.sharding ?? SHARDING,
    shards,
    state_digest: '0'.repeat(32),
    base: null,
    eval_losses: {},
    early_stopping: null,
    calls: null,
    reference: null,
    seed: 1,
    data_seed: 1,
    data_digest: 'sha256:0',
    tokens_digest: 'sha256:0',
    lr_schedule: {
      type: 'cosine',
      warmup_steps: 0,
      warmup_type: 'linear',
      warmup_start_lr: 0,
      min_lr: 0,
      decay_steps: null,
    },
    overrides: [],
    loss_scaler: {
      type: 'none',
      scale: 1,
      iteration: 0,
      last_overflow_iteration: -1,
      hysteresis: 1,
      skipped_in_a_row: 0,
    },
    total_steps: 100,
    leaves: 4,
    lanes: 4,
    numerics_fingerprint: 'cpu-generic/1',
    spec_hash: '0',
    parent: null,
    made_from: null,
    committed_at: '2026-01-01T00:00:00.000Z',
    program_version: '0.1.0',
  };
}

/** Stores such a checkpoint under `directory`. */
export async function putTestCheckpoint(
  objects: ObjectStore,
  directory: string,
  shape: TestCheckpointShape,
  id = 'ckpt_test',
  changes: Partial<Manifest> = {},
): Promise<Manifest> {
  for (const { shard, content } of testShards(shape))
    await objects.put(`${directory}/${shard.file}`, content);
  const manifest = { ...testManifest(shape), id, ...changes };
  await objects.put(`${directory}/${MANIFEST_FILE}`, encodeManifest(manifest), {
    createOnly: true,
  });
  return manifest;
}

/**
 * Returns the value of an element: its index among all possible states (state, then parameter, then element).
 */
export function elementValue(
  numels: readonly number[],
  state: StateName,
  param: number,
  element: number,
): number {
  const total = numels.reduce((sum, numel) => sum + numel, 0);
  const before = numels.slice(0, param).reduce((sum, numel) => sum + numel, 0);
  return STATE_NAMES.indexOf(state) * total + before + element;
}

function testShards(shape: TestCheckpointShape): { shard: ManifestShard; content: Buffer }[] {
  const blocks = ownedBlocks(shape);
  return Array.from({ length: shape.ranks }, (_, rank) =>
    buildShard(
      shape,
      blocks.filter((block) => block.rank === rank),
      `shard-${rank}.safetensors`,
    ),
  );
}

/** Elements `[begin, end)` of a parameter in one block. */
interface OwnedBlock {
  param: number;
  begin: number;
  end: number;
  rank: number;
}

/**
 * Returns every block in order with its owner, assigned one by one as native/zero describes it, independently
 * of the readers' code.
 */
function ownedBlocks(shape: TestCheckpointShape): OwnedBlock[] {
  const { ranks, sharding = SHARDING } = shape;
  const { block_elements, bucket_blocks, expert_sets } = sharding;
  const blocks = testParams(shape).flatMap(({ numel, frozen, expert_set }, param) =>
    Array.from({ length: Math.ceil(numel / block_elements) }, (_, i) => {
      const begin = i * block_elements;
      const end = Math.min(numel, begin + block_elements);
      return { param, begin, end, rank: -1, part: `${frozen}/${expert_set}`, expert_set };
    }),
  );
  for (const part of new Set(blocks.map((block) => block.part))) {
    const left = blocks.filter((block) => block.part === part);
    const set = left[0]?.expert_set ?? null;
    const owners = Array.from({ length: ranks }, (_, rank) => rank).filter(
      (rank) => set === null || rank % expert_sets === set,
    );
    let nextExtra = 0;
    while (left.length > 0) {
      const bucket = left.splice(-bucket_blocks);
      const extra = Array.from(
        { length: bucket.length % owners.length },
        (_, i) => (nextExtra + i) % owners.length,
      );
      nextExtra = (nextExtra + extra.length) % owners.length;
      const share = Math.floor(bucket.length / owners.length);
      let at = 0;
      for (const [position, rank] of owners.entries()) {
        const end = at + share + (extra.includes(position) ? 1 : 0);
        for (const block of bucket.slice(at, end)) block.rank = rank;
        at = end;
      }
    }
  }
  return blocks;
}

/** Builds the shard of one rank with all its states. */
function buildShard(shape: TestCheckpointShape, blocks: readonly OwnedBlock[], file: string) {
  const { numels, states = ADAM_STATES, value } = shape;
  const params = testParams(shape);
  const values: number[] = [];
  for (const state of states) {
    for (const { param, begin, end } of blocks) {
      if (!statesOf(params[param] ?? { frozen: false, base: false }, states).includes(state)) continue;
      const first = elementValue(numels, state, param, 0);
      for (let e = begin; e < end; e += 1) values.push(value?.(state, param, e) ?? first + e);
    }
  }
  const content = Buffer.concat([Buffer.alloc(HEADER_BYTES), Buffer.from(Float32Array.from(values).buffer)]);
  const chunks = new ChunkChecksums();
  chunks.add(content);
  const sha256 = createHash('sha256').update(content).digest('hex');
  const shard = { file, bytes: content.length, data_begin: HEADER_BYTES, sha256, crc32c: chunks.finish() };
  return { shard, content };
}
