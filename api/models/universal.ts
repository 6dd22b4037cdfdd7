/**
 * Weights and the state of the optimizer from a checkpoint in DeepSpeed's universal layout, of which each parameter's folder has
 * `fp32.pt`, `exp_avg.pt`, `exp_avg_sq.pt` and mostly `step.pt`. What is found is where the tensors lie in these files: ranks read
 * them from there.
 */
import { ZerofleetError } from '../../contracts/index.js';
import { isWeightDtype, type WeightState, type WeightTensor } from '../../platform/models/weights.js';
import { scalarOf, type TorchFile } from '../../platform/torch-file/read.js';
import { TorchTensor, type TorchValue } from '../../platform/torch-file/values.js';
import type { ModelShape } from './config.js';

/** Files of a parameter's folder, and what they hold. */
const STATES: Readonly<Record<string, WeightState>> = {
  'fp32.pt': 'master',
  'exp_avg.pt': 'exp_avg',
  'exp_avg_sq.pt': 'exp_avg_sq',
};
const STEP = 'step.pt';
const OPTIMIZER = 'zero/optimizer_state.pt';
const FILE = /^zero\/[A-Za-z0-9_][A-Za-z0-9_.-]{0,250}\/(fp32|exp_avg|exp_avg_sq|step)\.pt$/;

/** Where a path lies below the checkpoint's folder, when it is one of the files that are read; otherwise null. */
export function universalFile(path: readonly string[]): { root: string; name: string } | null {
  const zero = path.lastIndexOf('zero');
  const name = path.slice(zero).join('/');
  if (zero < 0 || (name !== OPTIMIZER && !FILE.test(name))) return null;
  return { root: path.slice(0, zero).join('/'), name };
}

interface FoundTensor extends Omit<WeightTensor, 'state'> {
  state: WeightState;
}

/** What of a file counts. */
export type UniversalPart =
  | { tensor: FoundTensor }
  | { param: string; step: number }
  | { group_steps: number[] };

/**
 * What a file of a checkpoint holds.
 * @throws ZerofleetError `model_tensor_mismatch`, `torch_file_invalid`, `optimizer_state_invalid`
 */
export function universalPart(name: string, file: TorchFile): UniversalPart {
  const [, param = '', kind = ''] = name.split('/');
  if (name === OPTIMIZER) return { group_steps: groupSteps(file) };
  if (kind === STEP) return { param, step: countOf(file, file.value, name) };
  return { tensor: tensorOf(name, param, kind, file) };
}

/** Collects the files of a checkpoint in whichever order they come. */
export class UniversalContents {
  private readonly found = new Map<string, FoundTensor>();
  private readonly steps = new Map<string, number>();
  private group_steps: number[] = [];

  get isEmpty(): boolean {
    return this.found.size === 0;
  }

  add(name: string, part: UniversalPart): void {
    if ('tensor' in part) this.found.set(name, part.tensor);
    else if ('step' in part) this.steps.set(part.param, part.step);
    else this.group_steps = part.group_steps;
  }

  /**
   * What each file holds, and how many updates the state has seen; null without a state.
   * @throws ZerofleetError `model_tensor_…`, `optimizer_state_invalid`
   */
  finish({ params }: ModelShape): { tensors: Map<string, WeightTensor[]>; optimizer_steps: number | null } {
    const shapes = new Map(params.map(({ name, shape, numel }) => [name, { shape, numel }]));
    const tensors = new Map<string, WeightTensor[]>();
    for (const [name, tensor] of this.found) {
      const param = shapes.get(tensor.param);
      const detail = (problem: string) => `${name}: ${problem}`;
      if (param === undefined)
        throw problem(
          'model_tensor_unexpected',
          detail('no parameter of the model that config.json describes'),
          name,
        );
      const flat = tensor.shape.length === 1 && tensor.shape[0] === param.numel;
      if (!flat && tensor.shape.join() !== param.shape.join())
        throw problem(
          'model_tensor_mismatch',
          detail(`it has the shape [${tensor.shape}]; config.json asks for [${param.shape}]`),
          name,
        );
      // ZeRO stage 3 saves flat tensors; the elements and their order are the same.
      tensors.set(name, [{ ...tensor, shape: param.shape }]);
    }
    this.checkWhole(params, 'fp32.pt');
    const has_state = [...this.found.values()].some(({ state }) => state !== 'master');
    if (!has_state) return { tensors, optimizer_steps: null };
    for (const file of ['exp_avg.pt', 'exp_avg_sq.pt']) this.checkWhole(params, file);
    return { tensors, optimizer_steps: this.optimizerSteps(params) };
  }

  private checkWhole(params: readonly { name: string }[], file: string): void {
    const missing = params.filter(({ name }) => !this.found.has(`zero/${name}/${file}`));
    const [first] = missing;
    if (first === undefined) return;
    const others = missing.length === 1 ? '' : ` (and ${missing.length - 1} more of its kind)`;
    const name = `zero/${first.name}/${file}`;
    throw problem('model_tensor_missing', `the checkpoint has no ${name}${others}`, name);
  }

  /** Adam corrects its bias by one count for all parameters. */
  private optimizerSteps(params: readonly { name: string }[]): number {
    const given = params.flatMap(({ name }) => this.steps.get(name) ?? []);
    const counts = new Set(given.length === params.length ? given : [...given, ...this.group_steps]);
    const [steps] = counts;
    if (steps === undefined)
      throw invalid(
        'the checkpoint does not say how many updates its optimizer has made (step.pt, or step in optimizer_state.pt)',
      );
    if (counts.size > 1)
      throw invalid(
        `its parameters have seen different numbers of updates: ${[...counts].slice(0, 5).join(', ')}`,
      );
    return steps;
  }
}

function tensorOf(name: string, param: string, kind: string, file: TorchFile): FoundTensor {
  const state = STATES[kind];
  const value = file.value instanceof Map ? file.value.get('param') : file.value;
  if (state === undefined || !(value instanceof TorchTensor))
    throw problem('model_tensor_mismatch', `${name} holds no tensor, and no dict with one as "param"`, name);
  const { dtype, shape } = value;
  if (!isWeightDtype(dtype))
    throw problem('model_tensor_mismatch', `${name} is of ${dtype}; floats of 32 and 16 bits are read`, name);
  const { byte_begin, byte_end } = file.place(value);
  return { state, param, dtype, shape: [...shape], byte_begin, byte_end };
}

function groupSteps(file: TorchFile): number[] {
  const groups = file.value instanceof Map ? file.value.get('param_groups') : null;
  if (!Array.isArray(groups)) return [];
  return groups.flatMap((group) => {
    const step = group instanceof Map ? group.get('step') : undefined;
    return step === undefined ? [] : [countOf(file, step, OPTIMIZER)];
  });
}

function countOf(file: TorchFile, value: TorchValue, name: string): number {
  const count = scalarOf(file, value);
  if (count === null || !Number.isSafeInteger(count) || count < 0)
    throw invalid(`${name} has no count of steps: ${count ?? 'no number'}`);
  return count;
}

function problem(
  code: 'model_tensor_unexpected' | 'model_tensor_mismatch' | 'model_tensor_missing',
  message: string,
  file: string,
): ZerofleetError {
  return new ZerofleetError(code, message, { details: { file } });
}

function invalid(message: string): ZerofleetError {
  return new ZerofleetError('optimizer_state_invalid', message);
}
