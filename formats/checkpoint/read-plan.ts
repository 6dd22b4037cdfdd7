/**
 * Plans reads of a checkpoint: maps elements that a rank will own to bytes of shards, for any numbers of
 * reading and writing ranks.
 */
import { setImmediate } from 'node:timers/promises';
import { ZerofleetError } from '../../contracts/index.js';
import type { StateName } from '../../contracts/rank-protocol.js';
import type { Manifest } from './manifest.js';
import { BYTES_PER_ELEMENT, ShardContents, statesOf } from './shard-contents.js';

/** Elements `[begin, end)` of one parameter. */
export interface WantedSlice {
  /** Name of the parameter. */
  param: string;
  begin: number;
  end: number;
}

export interface Wanted {
  /** States to read, as far as the parameter has them. */
  states: readonly StateName[];
  slices: readonly WantedSlice[];
}

/** Bytes `[byte_begin, byte_end)` of a shard and the elements that they hold. */
export interface PlannedRead {
  file: string;
  byte_begin: number;
  byte_end: number;
  state: StateName;
  param: string;
  /** First element. */
  begin: number;
}

/** Elements of one parameter in one shard. */
interface Piece {
  /** Number of the parameter. */
  index: number;
  begin: number;
  end: number;
}

/** Pieces between two yields to the event loop. */
const PIECES_AT_ONCE = 1000;

/**
 * Plans the reads of the wanted elements, each element once, ordered by file and byte. A large model has
 * hundreds of thousands of reads, so they are generated lazily.
 * @param contents of the manifest, for callers that plan more than once
 * @throws ZerofleetError `checkpoint_incomplete` when the manifest lacks an element
 */
export async function planReads(
  manifest: Manifest,
  { states, slices }: Wanted,
  contents = new ShardContents(manifest),
): Promise<Iterable<PlannedRead>> {
  const missing = states.find((state) => !manifest.states.includes(state));
  if (missing !== undefined) throw incomplete(`no parameter has a state ${missing}`);
  const pieces = await piecesByRank(contents, slices);
  return readsOf(manifest, { states, contents, pieces });
}

interface Plan {
  states: readonly StateName[];
  contents: ShardContents;
  pieces: ReadonlyMap<number, readonly Piece[]>;
}

function* readsOf(manifest: Manifest, { states, contents, pieces }: Plan): Generator<PlannedRead> {
  const { params, shards } = manifest;
  for (const [rank, { file, data_begin }] of shards.entries()) {
    const here = pieces.get(rank) ?? [];
    for (const state of manifest.states.filter((name) => states.includes(name))) {
      for (const { index, begin, end } of here) {
        const param = params[index];
        if (!param || !statesOf(param, states).includes(state)) continue;
        const before = contents.ownedBefore(rank, index, begin) * BYTES_PER_ELEMENT;
        const byteBegin = data_begin + contents.tensorBegin(rank, state, index) + before;
        const byteEnd = byteBegin + (end - begin) * BYTES_PER_ELEMENT;
        yield { file, byte_begin: byteBegin, byte_end: byteEnd, state, param: param.name, begin };
      }
    }
  }
}

/** Collects the pieces of each shard, ordered by parameter and element as they are stored. */
async function piecesByRank(
  contents: ShardContents,
  slices: readonly WantedSlice[],
): Promise<Map<number, Piece[]>> {
  const { params } = contents.state;
  const numbers = new Map(params.map(({ name }, index) => [name, index]));
  const wanted = slices.map(({ param, begin, end }) => {
    const index = numbers.get(param) ?? -1;
    const { numel = 0 } = params[index] ?? {};
    if (end > numel) throw incomplete(`${param}: element ${Math.max(begin, numel)} is missing`);
    return { index, begin, end };
  });
  const pieces = new Map<number, Piece[]>();
  let found = 0;
  for (const { index, ...slice } of wanted.sort((a, b) => a.index - b.index || a.begin - b.begin)) {
    for (const { rank, begin, end } of contents.owners(index, slice.begin, slice.end)) {
      const piece = { index, begin, end };
      const list = pieces.get(rank);
      if (list) list.push(piece);
      else pieces.set(rank, [piece]);
      found += 1;
      if (found % PIECES_AT_ONCE === 0) await setImmediate();
    }
  }
  return pieces;
}

function incomplete(message: string): ZerofleetError {
  return new ZerofleetError('checkpoint_incomplete', message);
}
