/**
 * From "these elements will be mine" to "these bytes of these shards": how any number of ranks reads what any
 * number wrote.
 */
import { ZerofleetError } from '../../contracts/index.js';
import type { StateName } from '../../contracts/rank-protocol.js';
import { BYTES_PER_ELEMENT, type Manifest, type ManifestTensor } from './manifest.js';

/** Elements `[begin, end)` of one state of one parameter that a rank will own. */
export interface WantedSlice {
  state: StateName;
  /** Name of the parameter. */
  param: string;
  begin: number;
  end: number;
}

/** One run of bytes `[byte_begin, byte_end)` of a shard and the elements that it holds. */
export interface PlannedRead {
  file: string;
  byte_begin: number;
  byte_end: number;
  state: StateName;
  param: string;
  /** The first element. */
  begin: number;
}

interface StoredTensor {
  file: string;
  tensor: ManifestTensor;
}

/**
 * Where the wanted elements lie: every element once, in the order of files and bytes.
 * @throws ZerofleetError `checkpoint_incomplete` when the manifest lacks one or has one twice
 */
export function planReads(manifest: Manifest, wanted: readonly WantedSlice[]): PlannedRead[] {
  const stored = indexTensors(manifest);
  const reads = wanted.flatMap((slice) => readsOf(slice, stored.get(`${slice.state}/${slice.param}`) ?? []));
  return reads.sort((a, b) => (a.file === b.file ? a.byte_begin - b.byte_begin : a.file < b.file ? -1 : 1));
}

/** The tensors of each state of each parameter, by their first element. */
function indexTensors(manifest: Manifest): Map<string, StoredTensor[]> {
  const index = new Map<string, StoredTensor[]>();
  for (const { file, tensors } of manifest.shards) {
    for (const tensor of tensors) {
      const key = `${tensor.state}/${tensor.param}`;
      const list = index.get(key);
      if (list) list.push({ file, tensor });
      else index.set(key, [{ file, tensor }]);
    }
  }
  for (const list of index.values()) list.sort((a, b) => a.tensor.element_begin - b.tensor.element_begin);
  return index;
}

/** Walks the sorted tensors along the slice; each must begin where the one before it ended. */
function readsOf({ state, param, begin, end }: WantedSlice, stored: readonly StoredTensor[]): PlannedRead[] {
  const reads: PlannedRead[] = [];
  let position = begin;
  const checkBorder = (found: number) => {
    if (found === position) return;
    const problem = found > position ? `element ${position} is missing` : `element ${found} is there twice`;
    throw new ZerofleetError('checkpoint_incomplete', `${state}/${param}: ${problem}`);
  };
  for (const { file, tensor } of stored) {
    const from = Math.max(begin, tensor.element_begin);
    const to = Math.min(end, tensor.element_end);
    if (from >= to) continue;
    checkBorder(from);
    const byte_begin = tensor.byte_begin + (from - tensor.element_begin) * BYTES_PER_ELEMENT;
    const byte_end = byte_begin + (to - from) * BYTES_PER_ELEMENT;
    reads.push({ file, byte_begin, byte_end, state, param, begin: from });
    position = to;
  }
  checkBorder(end);
  return reads;
}
