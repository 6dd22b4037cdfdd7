/**
 * Contents of each shard of a checkpoint and their byte offsets: a function of the parameters, a few numbers
 * and the number of ranks. So a manifest lists no ranges, and its size depends only on the parameters, the
 * files and their checksums.
 */
import { ZerofleetError } from '../../contracts/index.js';
import type { ParamRecord, Sharding, ShardRecord, StateName } from '../../contracts/rank-protocol.js';
import { blocksOf, ShardLayout } from '../../contracts/shard-layout.js';

export const BYTES_PER_ELEMENT = 4;

/** Inputs that determine the contents of each shard. */
export interface ShardedState {
  params: readonly Pick<ParamRecord, 'name' | 'numel' | 'frozen' | 'base' | 'expert_set'>[];
  /** States of the optimizer, in the order in which shards hold them; `master` is the first. */
  states: readonly StateName[];
  sharding: Sharding;
  world_size: number;
}

/** Elements `[begin, end)` of one parameter that one rank owns. */
interface OwnedElements {
  rank: number;
  begin: number;
  end: number;
}

/** Adjacent elements `[begin, end)` of one state of one parameter. */
interface Stretch {
  state: StateName;
  /** Number of the parameter. */
  param: number;
  begin: number;
  end: number;
}

/** Elements of one state of one parameter in a shard: bytes `[begin, end)` after the header. */
interface ShardTensor {
  state: StateName;
  param: string;
  begin: number;
  end: number;
}

/** Parameters that are partitioned among the same ranks with the same layout. */
interface Part {
  layout: ShardLayout;
  first_rank: number;
  /** Distance between two of its ranks. */
  stride: number;
}

/** Blocks of a parameter within its part. */
interface Location {
  part: Part;
  first_block: number;
  num_blocks: number;
}

/** Returns the states of one parameter. */
export function statesOf(
  param: Pick<ParamRecord, 'frozen' | 'base'>,
  states: readonly StateName[],
): readonly StateName[] {
  if (param.base) return [];
  return param.frozen ? ['master'] : states;
}

export class ShardContents {
  private readonly locations: Location[];
  /**
   * Tensor offsets of a shard by state and number of the parameter, cached for the ranks that were requested.
   */
  private readonly begins = new Map<number, ReadonlyMap<StateName, Float64Array>>();

  /** @throws ZerofleetError `checkpoint_incomplete` when expert sets do not fit the ranks */
  constructor(readonly state: ShardedState) {
    this.locations = locationsOf(state);
  }

  /** Yields the owners of elements `[begin, end)` of a parameter, ascending. */
  *owners(param: number, begin: number, end: number): Generator<OwnedElements> {
    const { part, first_block } = this.locationOf(param);
    const { block_elements } = this.state.sharding;
    const first = first_block + Math.floor(begin / block_elements);
    for (const run of part.layout.runs(first, first_block + blocksOf(end, block_elements))) {
      const elements = elementsOf(run, first_block, block_elements);
      yield {
        rank: part.first_rank + run.rank * part.stride,
        begin: Math.max(begin, elements.begin),
        end: Math.min(end, elements.end),
      };
    }
  }

  /**
   * Counts the elements of a parameter before `element` that a rank owns. The rank must own `element` as
   * well.
   */
  ownedBefore(rank: number, param: number, element: number): number {
    const { first_block } = this.locationOf(param);
    const { block_elements } = this.state.sharding;
    const block = first_block + Math.floor(element / block_elements);
    return this.ownedBlocks(rank, param, block) * block_elements + (element % block_elements);
  }

  /** Returns the offset after the header of one state of one parameter in a shard. */
  tensorBegin(rank: number, state: StateName, param: number): number {
    return this.tensorBegins(rank).get(state)?.[param] ?? Number.NaN;
  }

  /** Yields the tensors of a shard in byte order. */
  *tensors(rank: number): Generator<ShardTensor> {
    let at = 0;
    for (const state of this.state.states) {
      for (const [index, param] of this.state.params.entries()) {
        const end = at + this.tensorBytes(rank, state, index);
        if (end > at) yield { state, param: param.name, begin: at, end };
        at = end;
      }
    }
  }

  /** Yields the tensors of a shard, split wherever the next element belongs to another rank. */
  *stretches(rank: number): Generator<Stretch> {
    const { params, states, sharding } = this.state;
    for (const state of states) {
      for (const [param, record] of params.entries()) {
        if (!statesOf(record, states).includes(state)) continue;
        const { part, first_block, num_blocks } = this.locationOf(param);
        const local = localRank(part, rank);
        if (local === null) continue;
        for (const run of part.layout.runsOf(local, first_block, first_block + num_blocks)) {
          const { begin, end } = elementsOf(run, first_block, sharding.block_elements);
          yield { state, param, begin, end: Math.min(end, record.numel) };
        }
      }
    }
  }

  /** Returns the bytes after the header of every rank's shard. */
  dataBytes(): number[] {
    const { params, states, sharding, world_size } = this.state;
    const { block_elements } = sharding;
    const elements = new Array<number>(world_size).fill(0);
    const parts = new Map<Part, number>();
    for (const [index, param] of params.entries()) {
      const { part, first_block, num_blocks } = this.locationOf(index);
      const copies = statesOf(param, states).length;
      parts.set(part, copies);
      // The last block of a parameter is padded, and shards hold no padding.
      const [last] = part.layout.runs(first_block + num_blocks - 1, first_block + num_blocks);
      const owner = part.first_rank + (last?.rank ?? 0) * part.stride;
      elements[owner] = (elements[owner] ?? 0) - copies * (num_blocks * block_elements - param.numel);
    }
    for (const [{ layout, first_rank, stride }, copies] of parts) {
      for (let local = 0; local < layout.worldSize; local += 1) {
        const rank = first_rank + local * stride;
        elements[rank] = (elements[rank] ?? 0) + copies * layout.ownedBlocks(local) * block_elements;
      }
    }
    return elements.map((count) => count * BYTES_PER_ELEMENT);
  }

  private tensorBegins(rank: number): ReadonlyMap<StateName, Float64Array> {
    const known = this.begins.get(rank);
    if (known) return known;
    let at = 0;
    const begins = new Map(
      this.state.states.map((state) => [
        state,
        Float64Array.from(this.state.params, (_, param) => {
          const begin = at;
          at += this.tensorBytes(rank, state, param);
          return begin;
        }),
      ]),
    );
    this.begins.set(rank, begins);
    return begins;
  }

  private tensorBytes(rank: number, state: StateName, index: number): number {
    const param = this.state.params[index];
    if (!param || !statesOf(param, this.state.states).includes(state)) return 0;
    const { first_block, num_blocks } = this.locationOf(index);
    const { block_elements } = this.state.sharding;
    const end = first_block + num_blocks;
    const owned = this.ownedBlocks(rank, index, end);
    const hasLast = owned > this.ownedBlocks(rank, index, end - 1);
    const padding = hasLast ? num_blocks * block_elements - param.numel : 0;
    return (owned * block_elements - padding) * BYTES_PER_ELEMENT;
  }

  /** Counts the blocks of a parameter that a rank owns before a block of its part. */
  private ownedBlocks(rank: number, param: number, block: number): number {
    const { part, first_block } = this.locationOf(param);
    const { layout } = part;
    const local = localRank(part, rank);
    if (local === null) return 0;
    return layout.ownedBefore(block, local) - layout.ownedBefore(first_block, local);
  }

  private locationOf(param: number): Location {
    const location = this.locations[param];
    if (!location) throw new Error(`there is no parameter ${param}`);
    return location;
  }
}

/** Returns the number of a rank within a part; null if it owns nothing of the part. */
function localRank({ first_rank, stride }: Part, rank: number): number | null {
  const local = (rank - first_rank) / stride;
  return Number.isInteger(local) ? local : null;
}

function elementsOf(
  { begin, end }: { begin: number; end: number },
  firstBlock: number,
  blockElements: number,
) {
  return { begin: (begin - firstBlock) * blockElements, end: (end - firstBlock) * blockElements };
}

/**
 * Checks that every rank has one shard, with the length of what the rank owns.
 * @throws ZerofleetError `checkpoint_incomplete`
 */
export function checkShards(
  state: ShardedState,
  shards: readonly Pick<ShardRecord, 'file' | 'bytes' | 'data_begin'>[],
): void {
  if (shards.length !== state.world_size)
    throw incomplete(`there are ${shards.length} shards of ${state.world_size} ranks`);
  checkDistinct(state.params.map(({ name }) => name));
  checkDistinct(shards.map(({ file }) => file));
  const dataBytes = new ShardContents(state).dataBytes();
  for (const [rank, { file, bytes, data_begin }] of shards.entries()) {
    const wanted = dataBytes[rank] ?? 0;
    if (bytes - data_begin !== wanted)
      throw incomplete(`${file} has ${bytes - data_begin} bytes of the ${wanted} that rank ${rank} owns`);
  }
}

function checkDistinct(names: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) throw incomplete(`${name} occurs twice`);
    seen.add(name);
  }
}

/**
 * Locates the parameters as native/zero/step/model_plan does: with P expert sets, set s is partitioned among ranks
 * s, s + P, s + 2P, …
 */
function locationsOf({ params, sharding, world_size }: ShardedState): Location[] {
  const { block_elements, bucket_blocks, expert_sets } = sharding;
  if (world_size % expert_sets !== 0)
    throw incomplete(`${world_size} ranks are not a multiple of ${expert_sets} expert sets`);
  const groups = new Map<string, number[]>();
  for (const [index, { name, frozen, base, expert_set }] of params.entries()) {
    if (expert_set !== null && expert_set >= expert_sets)
      throw incomplete(`${name} is of set ${expert_set} of ${expert_sets} sets of experts`);
    const key = `${frozen} ${base} ${expert_set}`;
    const members = groups.get(key);
    if (members) members.push(index);
    else groups.set(key, [index]);
  }
  const locations: Location[] = [];
  for (const members of groups.values()) {
    const set = params[members[0] ?? 0]?.expert_set ?? null;
    const [firstRank, stride] = set === null ? [0, 1] : [set, expert_sets];
    const blocks = members.map((index) => blocksOf(params[index]?.numel ?? 0, block_elements));
    const totalBlocks = blocks.reduce((sum, some) => sum + some, 0);
    const layout = new ShardLayout(totalBlocks, world_size / stride, bucket_blocks);
    const part = { layout, first_rank: firstRank, stride };
    let firstBlock = 0;
    for (const [ordinal, index] of members.entries()) {
      const numBlocks = blocks[ordinal] ?? 0;
      locations[index] = { part, first_block: firstBlock, num_blocks: numBlocks };
      firstBlock += numBlocks;
    }
  }
  return locations;
}

function incomplete(message: string): ZerofleetError {
  return new ZerofleetError('checkpoint_incomplete', message);
}
