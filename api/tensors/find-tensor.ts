/**
 * Tasks that find tensors in a manifest. A manifest may have megabytes and the plan of a tensor many reads, so they run
 * in threads.
 */
import { ZerofleetError } from '../../contracts/index.js';
import { nearestName } from '../../contracts/nearest-name.js';
import type { StateName } from '../../contracts/rank-protocol.js';
import type { CheckpointTensorPage } from '../../contracts/types.js';
import { type Manifest, parseManifest } from '../../formats/checkpoint/manifest.js';
import { planReads } from '../../formats/checkpoint/read-plan.js';
import { statesOf } from '../../formats/checkpoint/shard-contents.js';
import type { ChecksummedFile } from '../../formats/checkpoint/verified-chunks.js';

/** MANIFEST.json. */
interface InManifest {
  manifest: Uint8Array;
}

/** One state of one parameter, and where its elements are. */
export interface FoundTensor {
  shape: number[];
  /** In the order of elements: number of the file, first byte, end. */
  reads: Float64Array;
  files: ChecksummedFile[];
}

/** @param input the tensors after `after`, in the order of the model; null: from the first on */
export function listTensors({
  manifest: bytes,
  after,
  limit,
}: InManifest & { after: string | null; limit: number }): CheckpointTensorPage {
  const manifest = parseManifest(bytes);
  const { params } = manifest;
  const begin = after === null ? 0 : params.indexOf(paramOf(manifest, after)) + 1;
  const data = params.slice(begin, begin + limit).map((param) => ({
    name: param.name,
    shape: param.shape,
    dtype: 'fp32' as const,
    states: [...statesOf(param, manifest.states)],
  }));
  const last = data.at(-1);
  return { data, next_cursor: last && begin + limit < params.length ? last.name : null };
}

/** @throws ZerofleetError `tensor_not_found` */
export async function findTensor({
  manifest: bytes,
  name,
  state,
}: InManifest & { name: string; state: StateName }): Promise<FoundTensor> {
  const manifest = parseManifest(bytes);
  const { numel, shape } = requireState(manifest, name, state);
  const wanted = { states: [state], slices: [{ param: name, begin: 0, end: numel }] };
  const plan = [...(await planReads(manifest, wanted))].sort((a, b) => a.begin - b.begin);
  const used = new Set(plan.map(({ file }) => file));
  const files = manifest.shards
    .filter(({ file }) => used.has(file))
    .map(({ file, bytes, crc32c }) => ({ file, bytes, crc32c }));
  const numbers = new Map(files.map(({ file }, index) => [file, index]));
  const reads = plan.flatMap((read) => [numbers.get(read.file) ?? 0, read.byte_begin, read.byte_end]);
  return { shape, files, reads: Float64Array.from(reads) };
}

function requireState(manifest: Manifest, name: string, state: StateName): Manifest['params'][number] {
  const param = paramOf(manifest, name);
  const states = statesOf(param, manifest.states);
  if (states.includes(state)) return param;
  const has = param.base
    ? 'is of the base under the adapters, which no checkpoint contains'
    : `has ${states.join(', ')}, but no ${state}`;
  throw new ZerofleetError('tensor_not_found', `${name} ${has}`);
}

/** @throws ZerofleetError `tensor_not_found` */
function paramOf({ id, params }: Manifest, name: string): Manifest['params'][number] {
  const found = params.find((param) => param.name === name);
  if (found) return found;
  const near = nearestName(
    name,
    params.map((param) => param.name),
  );
  const hint = near === undefined ? `GET /v1/checkpoints/${id}/tensors lists them` : `did you mean ${near}?`;
  throw new ZerofleetError('tensor_not_found', `${id} has no tensor ${name.slice(0, 200)}; ${hint}`);
}
