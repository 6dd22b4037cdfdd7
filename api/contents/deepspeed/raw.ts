import type { StateName } from '../../../contracts/rank-protocol.js';
import type { TorchFile } from '../../../platform/torch-file/read.js';
import { PyRecord, TorchTensor, type TorchValue } from '../../../platform/torch-file/values.js';
import type { ModelParam } from '../../../spec/index.js';
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
  /** Positions of parameter elements, per group; null in ZeRO stage 3. */
  slices: TorchValue[] | null;
  /** Number of ranks that shard each parameter in stage 3. */
  ranks: number;
  counts: number[];
}

/** Above the count of any real checkpoint. Limits small pickles that refer to one object many times. */
const MAX_GROUPS = 100_000;
const MAX_ENTRIES = 32;

export const CONVERT =
  'convert it with DeepSpeed’s ds_to_universal.py, and send the folder that this writes, with zero/ in it';

/**
 * Master weights and optimizer state of all ranks.
 * @param shapes `param_shapes` of a model states file: the parameters of each group, in their order
 * @throws ZerofleetError `optimizer_state_invalid`, `model_tensor_…`, `torch_file_invalid`
 */
export function rawRuns(
  files: readonly RankFile[],
  params: readonly ModelParam[],
  shapes: TorchValue | undefined,
): { runs: Run[]; counts: number[] } {
  const ranks = files.map(statesOf).sort((a, b) => a.rank - b.rank);
  const byName = new Map(params.map((param) => [param.name, param]));
  const nextElements = new Map<string, number>();
  const runs = ranks.flatMap((rank) => {
    const slices =
      rank.slices === null
        ? shardsOf(rank, itemsOf(shapes), byName)
        : slicesOf(rank, rank.slices, byName, nextElements);
    return runsOf(slices, rank);
  });
  return { runs, counts: ranks.flatMap(({ counts }) => counts) };
}

function statesOf({ name, rank, file }: RankFile): RankStates {
  const states = entryOf(file.value, 'optimizer_state_dict');
  const flat = entryOf(states, 'fp32_flat_groups');
  const isStage3 = flat !== undefined;
  const optimizer = entryOf(states, isStage3 ? 'optimizer_state_dict' : 'base_optimizer_state');
  const masters = itemsOf(isStage3 ? flat : entryOf(states, 'single_partition_of_fp32_groups'));
  const slices = entryOf(states, 'param_slice_mappings');
  const ranks = entryOf(states, 'partition_count');
  const says = isStage3 ? typeof ranks === 'number' && ranks > 0 : Array.isArray(slices);
  if (!says || masters.length === 0 || masters.length > MAX_GROUPS)
    throw invalidState(`${name} lacks the rank records that newer versions of ZeRO write; ${CONVERT}`);
  const entries = entryOf(optimizer, 'state') ?? optimizer;
  const groups = masters.map((master, index) => {
    const group: Group = new Map([['master', tensorOf(name, file, master, ` as group ${index}`)]]);
    const own = Array.isArray(entries) ? entries[index] : entryOf(entries, index);
    if (own instanceof Map) addStates(group, own, { name, file });
    return group;
  });
  return {
    name,
    rank,
    groups,
    slices: isStage3 ? null : itemsOf(slices),
    ranks: Number(ranks),
    counts: countsIn(file, optimizer, name),
  };
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

/** Elements of a parameter starting at `begin`, stored in a group's flat tensors starting at `offset`. */
interface Slice {
  param: string;
  group: Group;
  begin: number;
  offset: number;
  count: number;
}

/** Stages 1 and 2: a rank's slice of a parameter begins where the previous rank's slice ends. */
function slicesOf(
  { name, groups }: RankStates,
  mappings: readonly TorchValue[],
  params: ReadonlyMap<string, ModelParam>,
  nextElements: Map<string, number>,
): Slice[] {
  const known = new KnownParams(name, params);
  return groups.flatMap((group, index) => {
    const mapping = mappings[index];
    if (!(mapping instanceof Map)) return [];
    return [...mapping].map(([key, address]) => {
      const param = known.take(key).name;
      const { start, numel } = addressOf(address, name);
      const begin = nextElements.get(param) ?? 0;
      nextElements.set(param, begin + numel);
      return { param, group, begin, offset: start, count: numel };
    });
  });
}

function addressOf(address: TorchValue, name: string): { start: number; numel: number } {
  const { attributes } = address instanceof PyRecord ? address : { attributes: new Map() };
  const [start, numel] = [attributes.get('start'), attributes.get('numel')];
  if (isCount(start) && isCount(numel)) return { start, numel };
  throw invalidState(`${name} has a fragment_address without start and numel`);
}

/** Stage 3: each parameter is divided evenly over the ranks; the last ranks have the remainder. */
function shardsOf(
  { name, rank, groups, ranks }: RankStates,
  shapes: readonly TorchValue[],
  params: ReadonlyMap<string, ModelParam>,
): Slice[] {
  const known = new KnownParams(name, params);
  return groups.flatMap((group, index) => {
    const names = shapes[index];
    let offset = 0;
    return [...(names instanceof Map ? names.keys() : [])].map((key) => {
      const { name: param, numel } = known.take(key);
      const share = Math.ceil(numel / ranks);
      const begin = Math.min(rank * share, numel);
      const slice = { param, group, begin, offset, count: Math.min(share, numel - begin) };
      offset += share;
      return slice;
    });
  });
}

/** The model's parameters; each rank may have each of them once. */
class KnownParams {
  private readonly taken = new Set<string | number>();

  constructor(
    private readonly file: string,
    private readonly params: ReadonlyMap<string, ModelParam>,
  ) {}

  take(name: string | number): ModelParam {
    const param = this.params.get(String(name));
    const shown = JSON.stringify(name).slice(0, 200);
    if (param === undefined) {
      const detail = `${this.file}: ${shown} is not a parameter of the model in config.json`;
      throw problem('model_tensor_unexpected', detail, this.file);
    }
    if (this.taken.has(name))
      throw problem('model_tensor_unexpected', `${this.file} has ${shown} twice`, this.file);
    this.taken.add(name);
    return param;
  }
}

function runsOf(slices: readonly Slice[], { name }: RankStates): Run[] {
  return slices.flatMap(({ param, group, begin, offset, count }) => {
    if (count === 0) return [];
    return [...group].map(([state, tensor]) => {
      if (offset + count <= tensor.numel) return runOf(tensor, { state, param, begin, offset, count });
      const detail = `${name} says that ${param} is at elements [${offset}, ${offset + count}) of ${tensor.numel}`;
      throw problem('model_tensor_mismatch', detail, name);
    });
  });
}

/**
 * Frozen parameters from the model states files: whole, or in stage 3 one share per rank.
 * @throws ZerofleetError `model_tensor_mismatch`, `torch_file_invalid`
 */
export function frozenRuns(files: readonly RankFile[], params: readonly ModelParam[]): Run[] {
  return files.flatMap(({ name, rank, file }) => {
    const fragments = entryOf(file.value, 'frozen_param_fragments');
    return params.flatMap(({ name: param, shape, numel }) => {
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
