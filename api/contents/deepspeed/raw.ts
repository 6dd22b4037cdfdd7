import type { StateName } from '../../../contracts/rank-protocol.js';
import { readScaler } from '../../../formats/checkpoint/deepspeed-scaler.js';
import type { OptimizerProgress } from '../../../formats/models/weights.js';
import type { TorchFile } from '../../../formats/torch-file/read.js';
import { TorchTensor, type TorchValue } from '../../../formats/torch-file/values.js';
import type { ModuleTensor } from '../../../job-document/index.js';
import { STATE_FILES } from './names.js';
import { type FoundTensor, invalidState, problem, type Run, runOf, tensorOf } from './runs.js';
import { countsIn, entryOf, itemsOf } from './updates.js';

/** A file written by one rank. */
export interface RankFile {
  name: string;
  rank: number;
  file: TorchFile;
}

/** A rank's shard of one parameter group: master weights and states, each flat. */
type Group = Map<StateName, FoundTensor>;

interface RankStates {
  name: string;
  rank: number;
  groups: Group[];
  isStage3: boolean;
  /** Number of ranks that share the groups. */
  ranks: number;
  counts: number[];
  /** The same on every rank; null unless it is dynamic. */
  loss_scaler: OptimizerProgress['loss_scaler'];
}

/** Above the count of any real checkpoint. Limits small pickles that refer to one object many times. */
const MAX_GROUPS = 100_000;
const MAX_ENTRIES = 32;

const PARAM_SHAPES = 'param_shapes of the model states';

export const CONVERT =
  'convert it with DeepSpeed’s ds_to_universal.py, and send the folder that this writes, with zero/ in it';

/**
 * Master weights and optimizer state of all ranks.
 * @param tensors those that the module may have, by name
 * @param shapes `param_shapes` of a model states file: the tensors of each group, in the order of their elements. It
 *   holds in every mode; `param_slice_mappings` of the ranks does not with `round_robin_gradients`
 * @throws ZerofleetError `optimizer_state_invalid`, `model_tensor_…`, `torch_file_invalid`
 */
export function rawRuns(
  files: readonly RankFile[],
  tensors: ReadonlyMap<string, ModuleTensor>,
  shapes: readonly TorchValue[],
): { runs: Run[]; counts: number[]; loss_scaler: OptimizerProgress['loss_scaler'] } {
  const ranks = files.map(statesOf).sort((a, b) => a.rank - b.rank);
  const left = new Map(tensors);
  const groups = shapes.map((names) => tensorsOf(names, left));
  checkRanks(ranks, groups.length);
  const runs = groups.flatMap((group, index) => {
    const flat = ranks.map((rank) => ({ ...rank, group: rank.groups[index] ?? new Map() }));
    return flat[0]?.isStage3 ? flat.flatMap((rank) => sharesOf(rank, group)) : slicesOf(flat, group);
  });
  return { runs, counts: ranks.flatMap(({ counts }) => counts), loss_scaler: ranks[0]?.loss_scaler ?? null };
}

/** Takes the tensors of a group from those that no group before it has. */
function tensorsOf(names: TorchValue, left: Map<string, ModuleTensor>): ModuleTensor[] {
  if (!(names instanceof Map)) throw invalidState(`${PARAM_SHAPES} has a group without names`);
  return [...names.keys()].map((key) => {
    const name = String(key);
    const tensor = left.get(name);
    left.delete(name);
    if (tensor !== undefined) return tensor;
    const shown = JSON.stringify(key).slice(0, 200);
    const detail = `${PARAM_SHAPES}: ${shown} is not a parameter of the model in config.json, or is there twice`;
    throw problem('model_tensor_unexpected', detail, name.slice(0, 200));
  });
}

/** Without one of the files the elements of all others would be read at wrong indices. */
function checkRanks(ranks: readonly RankStates[], numGroups: number): void {
  for (const [index, { name, rank, groups, ranks: count }] of ranks.entries()) {
    if (groups.length !== numGroups)
      throw invalidState(`${name} has ${groups.length} groups, and ${PARAM_SHAPES} ${numGroups}`);
    if (rank === index && count === ranks.length) continue;
    const detail = `the checkpoint is of ${count} ranks, and the archive has optimizer states of ${ranks.length}. Send the files of all ranks`;
    throw problem('model_tensor_missing', detail, name);
  }
}

function statesOf({ name, rank, file }: RankFile): RankStates {
  const states = entryOf(file.value, 'optimizer_state_dict');
  const flat = entryOf(states, 'fp32_flat_groups');
  const isStage3 = flat !== undefined;
  const optimizer = entryOf(states, isStage3 ? 'optimizer_state_dict' : 'base_optimizer_state');
  const masters = itemsOf(isStage3 ? flat : entryOf(states, 'single_partition_of_fp32_groups'));
  const ranks = rankCount(entryOf(states, 'partition_count'));
  if (ranks === null || masters.length === 0 || masters.length > MAX_GROUPS)
    throw invalidState(`${name} lacks the rank records that newer versions of ZeRO write; ${CONVERT}`);
  const entries = entryOf(optimizer, 'state') ?? optimizer;
  const groups = masters.map((master, index) => {
    const group: Group = new Map([['master', tensorOf(name, file, master, ` as group ${index}`)]]);
    const own = Array.isArray(entries) ? entries[index] : entryOf(entries, index);
    if (own instanceof Map) addStates(group, own, { name, file });
    return group;
  });
  const lossScaler = readScaler(entryOf(states, 'loss_scaler'));
  return {
    name,
    rank,
    groups,
    isStage3,
    ranks,
    counts: countsIn(file, optimizer, name),
    loss_scaler: lossScaler,
  };
}

/** Number of ranks: one for all groups, or one for each of them. Null for groups that ranks share differently. */
function rankCount(value: TorchValue | undefined): number | null {
  const counts = new Set(Array.isArray(value) ? value : [value]);
  const [count] = counts;
  return counts.size === 1 && isCount(count) && count > 0 ? count : null;
}

function addStates(
  group: Group,
  own: ReadonlyMap<string | number, TorchValue>,
  { name, file }: Pick<RankFile, 'name' | 'file'>,
): void {
  if (own.size > MAX_ENTRIES) throw invalidState(`${name} has ${own.size} states of one group`);
  for (const [key, value] of own) {
    if (!(value instanceof TorchTensor) || value.shape.length === 0) continue;
    const state = Object.hasOwn(STATE_FILES, key) ? STATE_FILES[key] : undefined;
    if (state === undefined || state === 'master')
      throw invalidState(
        `${name} has the state ${JSON.stringify(key).slice(0, 100)}, which no supported optimizer has`,
      );
    group.set(state, tensorOf(name, file, value, ` as ${state}`));
  }
}

/** A rank's file and its part of one group. */
interface RankGroup {
  name: string;
  rank: number;
  group: Group;
}

/** Stages 1 and 2: the ranks' parts follow each other, and so do the tensors; padding is at the end. */
function slicesOf(ranks: readonly RankGroup[], tensors: readonly ModuleTensor[]): Run[] {
  let first = 0;
  const parts = ranks.map((rank) => {
    const begin = first;
    first += rank.group.get('master')?.numel ?? 0;
    return { ...rank, begin, end: first };
  });
  let next = 0;
  return tensors.flatMap(({ name: param, numel }) => {
    const at = next;
    next += numel;
    return parts.flatMap((part) => {
      const [begin, end] = [Math.max(at, part.begin), Math.min(at + numel, part.end)];
      const slice = { param, begin: begin - at, offset: begin - part.begin, count: end - begin };
      return begin < end ? runsOf(slice, part) : [];
    });
  });
}

/** Stage 3: each tensor is divided evenly over the ranks; the last ranks have the remainder. */
function sharesOf(part: RankGroup & { ranks: number }, tensors: readonly ModuleTensor[]): Run[] {
  let offset = 0;
  return tensors.flatMap(({ name: param, numel }) => {
    const share = Math.ceil(numel / part.ranks);
    const begin = Math.min(part.rank * share, numel);
    const slice = { param, begin, offset, count: Math.min(share, numel - begin) };
    offset += share;
    return slice.count === 0 ? [] : runsOf(slice, part);
  });
}

/** Elements of a tensor starting at `begin`, stored in a group's flat tensors starting at `offset`. */
interface Slice {
  param: string;
  begin: number;
  offset: number;
  count: number;
}

function runsOf({ param, begin, offset, count }: Slice, { name, group }: RankGroup): Run[] {
  return [...group].map(([state, tensor]) => {
    if (offset + count <= tensor.numel) return runOf(tensor, { state, param, begin, offset, count });
    const detail = `${name} says that ${param} is at elements [${offset}, ${offset + count}) of ${tensor.numel}`;
    throw problem('model_tensor_mismatch', detail, name);
  });
}

/**
 * Frozen tensors from the model states files: whole, or in stage 3 one share per rank.
 * @throws ZerofleetError `model_tensor_mismatch`, `torch_file_invalid`
 */
export function frozenRuns(files: readonly RankFile[], tensors: readonly ModuleTensor[]): Run[] {
  return files.flatMap(({ name, rank, file }) => {
    const fragments = entryOf(file.value, 'frozen_param_fragments');
    return tensors.flatMap(({ name: param, shape, numel }) => {
      const fragment = entryOf(fragments, param);
      if (fragment === undefined) return [];
      const tensor = tensorOf(name, file, fragment, ` as ${param}`);
      if (tensor.shape.length > 1 && tensor.shape.join() !== shape.join()) {
        const detail = `${name}: ${param} has the shape [${tensor.shape}]; config.json requires [${shape}]`;
        throw problem('model_tensor_mismatch', detail, name);
      }
      const begin = Math.min(rank * tensor.numel, numel);
      const count = Math.min(tensor.numel, numel - begin);
      return count === 0 ? [] : [runOf(tensor, { state: 'master', param, begin, offset: 0, count })];
    });
  });
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
