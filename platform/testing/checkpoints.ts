import { createHash } from 'node:crypto';
import { MANIFEST_FILE } from '../checkpoint/layout.js';
import { BYTES_PER_ELEMENT, type Manifest, type ManifestShard, STATE_NAMES } from '../checkpoint/manifest.js';
import { ChunkChecksums } from '../checkpoint/verify.js';
import type { ObjectStore } from '../object-store/port.js';

/** Any header does: what reads a checkpoint goes by the manifest. */
const HEADER_BYTES = 64;

export interface TestCheckpointShape {
  /** Elements of each parameter `p0`, `p1`, … */
  numels: readonly number[];
  /** Where one shard ends and the next begins, in elements of all parameters in a row, ascending. */
  cuts: readonly number[];
}

/** A consistent manifest of a checkpoint in which the value of every element is its own number. */
export function testManifest(shape: TestCheckpointShape): Manifest {
  const shards = testShards(shape).map(({ shard }) => shard);
  return {
    format_version: 1,
    id: 'ckpt_test',
    job_id: 'job_test',
    step: 10,
    optimizer_steps: 10,
    skipped_steps: 0,
    world_size: shards.length,
    epoch: 1,
    params: shape.numels.map((numel, i) => ({ name: `p${i}`, shape: [numel], numel, group: 'decay' })),
    states: [...STATE_NAMES],
    shards,
    state_digest: '0'.repeat(32),
    seed: 1,
    data_seed: 1,
    data_digest: 'sha256:0',
    lr_schedule: { type: 'cosine', warmup_steps: 0, min_lr: 0 },
    total_steps: 100,
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
): Promise<Manifest> {
  for (const { shard, content } of testShards(shape))
    await objects.put(`${directory}/${shard.file}`, content);
  const manifest = testManifest(shape);
  await objects.put(`${directory}/${MANIFEST_FILE}`, Buffer.from(JSON.stringify(manifest)), {
    createOnly: true,
  });
  return manifest;
}

/** The value of an element: its place in the whole state (state, then parameter, then element). */
export function elementValue(
  numels: readonly number[],
  state: number,
  param: number,
  element: number,
): number {
  const total = numels.reduce((sum, numel) => sum + numel, 0);
  const before = numels.slice(0, param).reduce((sum, numel) => sum + numel, 0);
  return state * total + before + element;
}

function testShards({ numels, cuts }: TestCheckpointShape): { shard: ManifestShard; content: Buffer }[] {
  const total = numels.reduce((sum, numel) => sum + numel, 0);
  const borders = [0, ...cuts, total];
  return borders.slice(1).map((end, i) => buildShard(numels, borders[i] ?? 0, end, `shard-${i}.safetensors`));
}

/** What one rank owns, `[begin, end)` in elements of all parameters in a row, of every state. */
function buildShard(numels: readonly number[], begin: number, end: number, file: string) {
  const tensors: ManifestShard['tensors'] = [];
  const values: number[] = [];
  for (const [s, state] of STATE_NAMES.entries()) {
    let offset = 0;
    for (const [p, numel] of numels.entries()) {
      const element_begin = Math.max(begin - offset, 0);
      const element_end = Math.min(end - offset, numel);
      offset += numel;
      if (element_begin >= element_end) continue;
      const byte_begin = HEADER_BYTES + values.length * BYTES_PER_ELEMENT;
      for (let e = element_begin; e < element_end; e += 1) values.push(elementValue(numels, s, p, e));
      const byte_end = HEADER_BYTES + values.length * BYTES_PER_ELEMENT;
      tensors.push({ state, param: `p${p}`, element_begin, element_end, byte_begin, byte_end });
    }
  }
  const content = Buffer.concat([Buffer.alloc(HEADER_BYTES), Buffer.from(Float32Array.from(values).buffer)]);
  const chunks = new ChunkChecksums();
  chunks.add(content);
  const sha256 = createHash('sha256').update(content).digest('hex');
  return { shard: { file, bytes: content.length, sha256, crc32c: chunks.finish(), tensors }, content };
}
