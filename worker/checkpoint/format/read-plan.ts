import { ZerofleetError } from '../../../contracts/index.js';
import type { Manifest } from './manifest.js';

/** Elements of one state of one parameter that a rank will own. */
export interface WantedSlice {
  state: Manifest['shards'][number]['tensors'][number]['state'];
  param: string;
  begin: number;
  end: number;
}

/** One run of bytes of a shard and the elements that it holds. */
export interface PlannedRead {
  file: string;
  byte_begin: number;
  byte_end: number;
  state: WantedSlice['state'];
  param: string;
  /** The first element. */
  begin: number;
}

const BYTES_PER_ELEMENT = 4;

/**
 * Where the wanted elements lie, each byte once, in the order of files and bytes.
 * @throws ZerofleetError `checkpoint_incomplete` when the manifest does not have all of them
 */
export function planReads(manifest: Manifest, wanted: readonly WantedSlice[]): PlannedRead[] {
  const stored = new Map<string, { file: string; tensor: Manifest['shards'][number]['tensors'][number] }[]>();
  for (const { file, tensors } of manifest.shards) {
    for (const tensor of tensors) {
      const key = `${tensor.state}/${tensor.param}`;
      stored.set(key, [...(stored.get(key) ?? []), { file, tensor }]);
    }
  }
  const reads = wanted.flatMap((slice) => {
    const found: PlannedRead[] = [];
    let elements = 0;
    for (const { file, tensor } of stored.get(`${slice.state}/${slice.param}`) ?? []) {
      const begin = Math.max(slice.begin, tensor.element_begin);
      const end = Math.min(slice.end, tensor.element_end);
      if (begin >= end) continue;
      const byte_begin = tensor.byte_begin + (begin - tensor.element_begin) * BYTES_PER_ELEMENT;
      const byte_end = byte_begin + (end - begin) * BYTES_PER_ELEMENT;
      found.push({ file, byte_begin, byte_end, state: slice.state, param: slice.param, begin });
      elements += end - begin;
    }
    if (elements !== slice.end - slice.begin) {
      const { state, param, begin, end } = slice;
      throw new ZerofleetError(
        'checkpoint_incomplete',
        `elements [${begin}, ${end}) of ${state}/${param} are not stored once`,
      );
    }
    return found;
  });
  return reads.sort((a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : a.byte_begin - b.byte_begin));
}
