/** Writes the shards of a checkpoint once more, with another value of one tensor. */
import { createHash } from 'node:crypto';
import { crc32c } from '@node-rs/crc32';
import { type ResolvedJobSpec, ZerofleetError } from '../../../contracts/index.js';
import type { StateName } from '../../../contracts/rank-protocol.js';
import { blocksOf } from '../../../contracts/shard-layout.js';
import { replaceInDigest, sumDigests } from '../../../formats/checkpoint/digest.js';
import { REFERENCE_FILE } from '../../../formats/checkpoint/layout.js';
import {
  CHUNK_BYTES,
  crcOfChunk,
  hexCrc,
  type Manifest,
  type ManifestShard,
} from '../../../formats/checkpoint/manifest.js';
import { type PlannedRead, planReads } from '../../../formats/checkpoint/read-plan.js';
import { BYTES_PER_ELEMENT } from '../../../formats/checkpoint/shard-contents.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';
import type { NativeCore } from '../../shared/native/adapter.js';
import { readManifest } from '../../shared/read-manifest.js';
import { widenToFp32 } from '../../shared/widen.js';
import { ChunkReader } from '../export/chunk-reader.js';
import { TensorReader } from '../export/tensor-reader.js';
import type { TaskRequest, TaskResults } from '../protocol.js';

type EditRequest = Extract<TaskRequest, { kind: 'edit' }>;
type Core = Pick<NativeCore, 'digestValues' | 'castTo16Bit'>;

/** Blocks of which the digest is computed at a time. */
const BLOCKS_AT_ONCE = 256;

/**
 * Writes all files of the new checkpoint but its manifest. Bytes that do not change are verified and copied.
 * @throws ZerofleetError `manifest_invalid`, `shard_corrupt`, `tensor_invalid`; errors of the object store
 */
export async function editCheckpoint(
  objects: ObjectStore,
  core: Core,
  request: EditRequest,
): Promise<TaskResults['edit']> {
  const { checkpoint, directory, tensor, tensor_state: state, retry } = request;
  const manifest = await retryTransient(() => readManifest(objects, checkpoint), retry);
  const param = manifest.params.find(({ name }) => name === tensor);
  if (!param) throw new Error(`no parameter ${tensor}`);
  const by = await newPart(objects, core, request, { manifest, param });
  const wanted = { states: [state], slices: [{ param: tensor, begin: 0, end: param.numel }] };
  const reads = [...(await planReads(manifest, wanted))];
  const chunks = new ChunkReader({ objects, directory: checkpoint, files: manifest.shards, retry });
  const shards: ManifestShard[] = [];
  for (const shard of manifest.shards) {
    const changes = reads.filter(({ file }) => file === shard.file);
    const written = await retryTransient(
      () => putShard(objects, { shard, changes, chunks, directory, values: request.values.key }),
      retry,
    );
    shards.push(written);
  }
  if (manifest.reference !== null) {
    const copy = async () =>
      objects.put(`${directory}/${REFERENCE_FILE}`, await objects.get(`${checkpoint}/${REFERENCE_FILE}`));
    await retryTransient(copy, retry);
  }
  const reader = new TensorReader({ objects, directory: checkpoint, manifest, retry });
  const part = await digestOf(core, { manifest, tensor, state }, reader.read(state, tensor, param.numel));
  return { shards, state_digest: replaceInDigest(manifest.state_digest, part, by) };
}

/** Checks the new values and returns their part of the digest. */
async function newPart(
  objects: ObjectStore,
  core: Core,
  { spec, tensor, tensor_state: state, values, retry }: EditRequest,
  { manifest, param }: { manifest: Manifest; param: Manifest['params'][number] },
): Promise<string> {
  const dtype = storedDtype(spec, state, param.frozen);
  const hash = createHash('sha256');
  const checked = async function* () {
    for await (const piece of await retryTransient(() => objects.stream(values.key), retry)) {
      hash.update(piece);
      yield piece;
    }
  };
  const check = (blocks: Uint8Array) => {
    if (dtype === 'fp32') return;
    const rounded = widenToFp32(dtype === 'bf16' ? 'BF16' : 'F16', core.castTo16Bit(dtype, blocks));
    if (!Buffer.from(blocks).equals(Buffer.from(rounded)))
      throw new ZerofleetError(
        'tensor_invalid',
        `ranks keep ${state} of ${tensor} in ${dtype}: round the values to ${dtype}`,
      );
  };
  const part = await digestOf(core, { manifest, tensor, state }, checked(), check);
  if (hash.digest('hex') === values.sha256) return part;
  throw new ZerofleetError('tensor_invalid', `the stored values of ${tensor} are damaged: send them again`);
}

/** Dtype in which ranks hold a state: values that it cannot hold exactly would change at the load. */
function storedDtype({ train, zero }: ResolvedJobSpec, state: StateName, frozen: boolean) {
  if (frozen) return train.precision;
  return state === 'master' ? zero.master_dtype : 'fp32';
}

interface DigestedTensor {
  manifest: Manifest;
  tensor: string;
  state: StateName;
}

/**
 * Part of the state digest of one state of a parameter. @param check called with the values, in pieces of whole blocks
 */
async function digestOf(
  core: Core,
  { manifest: { params, sharding }, tensor, state }: DigestedTensor,
  pieces: AsyncIterable<Uint8Array>,
  check: (blocks: Uint8Array) => void = () => undefined,
): Promise<string> {
  const { block_elements } = sharding;
  const before = params.slice(
    0,
    params.findIndex(({ name }) => name === tensor),
  );
  let block = before.reduce((sum, { numel }) => sum + blocksOf(numel, block_elements), 0);
  const parts: string[] = [];
  const size = BLOCKS_AT_ONCE * block_elements * BYTES_PER_ELEMENT;
  for await (const blocks of piecesOf(pieces, size)) {
    check(blocks);
    parts.push(core.digestValues(state, block, blocks));
    block += BLOCKS_AT_ONCE;
  }
  return sumDigests(parts);
}

/** Yields the same bytes in pieces of one size, the last one shorter, each in memory of its own. */
async function* piecesOf(pieces: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let held = new Uint8Array(size);
  let length = 0;
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      const some = piece.subarray(at, at + size - length);
      held.set(some, length);
      length += some.length;
      at += some.length;
      if (length < size) continue;
      yield held;
      held = new Uint8Array(size);
      length = 0;
    }
  }
  if (length > 0) yield held.subarray(0, length);
}

interface ShardEdit {
  shard: ManifestShard;
  /** Runs of the shard that get new values, in the order of its bytes. */
  changes: readonly PlannedRead[];
  chunks: ChunkReader;
  /** Key of the new directory. */
  directory: string;
  /** Key of the new values. */
  values: string;
}

async function putShard(objects: ObjectStore, edit: ShardEdit): Promise<ManifestShard> {
  const { shard, directory } = edit;
  const hash = createHash('sha256');
  const crcs: string[] = [];
  const content = async function* () {
    for (let begin = 0; begin < shard.bytes; begin += CHUNK_BYTES) {
      const [chunk, isChanged] = await newChunk(objects, edit, begin);
      hash.update(chunk);
      crcs.push(isChanged ? hexCrc(crc32c(chunk)) : crcOfChunk(shard.crc32c, begin / CHUNK_BYTES));
      yield chunk;
    }
  };
  await objects.put(`${directory}/${shard.file}`, content(), { bytes: shard.bytes });
  return { ...shard, sha256: hash.digest('hex'), crc32c: crcs.join('') };
}

async function newChunk(
  objects: ObjectStore,
  { shard, changes, chunks, values }: ShardEdit,
  begin: number,
): Promise<[Buffer, isChanged: boolean]> {
  const end = Math.min(shard.bytes, begin + CHUNK_BYTES);
  const pieces: Uint8Array[] = [];
  for await (const piece of chunks.read(shard.file, begin, end)) pieces.push(piece);
  const chunk = Buffer.concat(pieces);
  const here = changes.filter(({ byte_begin, byte_end }) => byte_begin < end && byte_end > begin);
  for (const run of here) {
    const [from, to] = [Math.max(begin, run.byte_begin), Math.min(end, run.byte_end)];
    const first = run.begin * BYTES_PER_ELEMENT + from - run.byte_begin;
    const fresh = await objects.get(values, { begin: first, end: first + to - from });
    fresh.copy(chunk, from - begin);
  }
  return [chunk, here.length > 0];
}
