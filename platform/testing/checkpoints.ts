import { createHash } from 'node:crypto';
import type { StateName } from '../../contracts/rank-protocol.js';
import { MANIFEST_FILE } from '../checkpoint/layout.js';
import {
  BYTES_PER_ELEMENT,
  encodeManifest,
  FORMAT_VERSION,
  type Manifest,
  type ManifestShard,
  STATE_NAMES,
  statesOf,
} from '../checkpoint/manifest.js';
import { ChunkChecksums } from '../checkpoint/verify.js';
import type { ObjectStore } from '../object-store/port.js';

/** Any header does: what reads a checkpoint goes by the manifest. */
const HEADER_BYTES = 64;

export interface TestCheckpointShape {
  /** Elements of each parameter `p0`, `p1`, … */
  numels: readonly number[];
  /** Where one shard ends and the next begins, in elements of all parameters in a row, ascending. */
  cuts: readonly number[];
  /** Of the optimizer; AdamW's unless given. */
  states?: readonly StateName[];
  /** Numbers of the parameters that are not trained. */
  frozen?: readonly number[];
}

/** What AdamW, Adam and LAMB keep. */
export const ADAM_STATES: readonly StateName[] = ['master', 'exp_avg', 'exp_avg_sq'];

/** The parameters of such a checkpoint. */
export function testParams({ numels, frozen = [] }: TestCheckpointShape): Manifest['params'] {
  return numels.map((numel, i) => ({
    name: `p${i}`,
    shape: [numel],
    numel,
    group: 'decay',
    frozen: frozen.includes(i),
  }));
}

/** A consistent manifest of a checkpoint in which the value of every element is its own number. */
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
    shards,
    state_digest: '0'.repeat(32),
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
): Promise<Manifest> {
  for (const { shard, content } of testShards(shape))
    await objects.put(`${directory}/${shard.file}`, content);
  const manifest = { ...testManifest(shape), id };
  await objects.put(`${directory}/${MANIFEST_FILE}`, encodeManifest(manifest), {
    createOnly: true,
  });
  return manifest;
}

/** The value of an element: its place among all states that there may be (state, then parameter, then element). */
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
  const total = shape.numels.reduce((sum, numel) => sum + numel, 0);
  const borders = [0, ...shape.cuts, total];
  return borders
    .slice(1)
    .map((end, i) => buildShard(shape, [borders[i] ?? 0, end], `shard-${i}.safetensors`));
}

/** What one rank owns, `[begin, end)` in elements of all parameters in a row, of every state that there is of them. */
function buildShard(shape: TestCheckpointShape, [begin, end]: [number, number], file: string) {
  const { numels, states = ADAM_STATES } = shape;
  const params = testParams(shape);
  const tensors: ManifestShard['tensors'] = [];
  const values: number[] = [];
  for (const state of states) {
    let offset = 0;
    for (const [p, param] of params.entries()) {
      const element_begin = Math.max(begin - offset, 0);
      const element_end = Math.min(end - offset, param.numel);
      offset += param.numel;
      if (element_begin >= element_end || !statesOf(param, states).includes(state)) continue;
      const byte_begin = HEADER_BYTES + values.length * BYTES_PER_ELEMENT;
      for (let e = element_begin; e < element_end; e += 1) values.push(elementValue(numels, state, p, e));
      const byte_end = HEADER_BYTES + values.length * BYTES_PER_ELEMENT;
      tensors.push({ state, param: param.name, element_begin, element_end, byte_begin, byte_end });
    }
  }
  const content = Buffer.concat([Buffer.alloc(HEADER_BYTES), Buffer.from(Float32Array.from(values).buffer)]);
  const chunks = new ChunkChecksums();
  chunks.add(content);
  const sha256 = createHash('sha256').update(content).digest('hex');
  return { shard: { file, bytes: content.length, sha256, crc32c: chunks.finish(), tensors }, content };
}
