import type { StateName } from '../../../contracts/rank-protocol.js';
import { readScaler } from '../../../formats/checkpoint/deepspeed-scaler.js';
import type { OptimizerProgress } from '../../../formats/models/weights.js';
import type { TorchFile } from '../../../formats/torch-file/read.js';
import type { ModuleTensor } from '../../../job-document/index.js';
import { STATE_FILES, stateFile } from './names.js';
import { type FoundTensor, invalidState, problem, type Run, runOf, tensorOf } from './runs.js';
import { countOf, countsIn, entryOf } from './updates.js';

/** A file of a parameter's folder. */
interface ParamFile {
  name: string;
  param: string;
  content: string;
  file: TorchFile;
}

/** Files below `zero/`, each with one state of one parameter. */
export class UniversalFiles {
  private readonly tensors: { state: StateName; param: string; tensor: FoundTensor }[] = [];
  private readonly steps = new Map<string, number>();
  private groupCounts: number[] = [];
  /** Null unless it is dynamic. */
  lossScaler: OptimizerProgress['loss_scaler'] = null;

  get isEmpty(): boolean {
    return this.tensors.length === 0;
  }

  /** @throws ZerofleetError `model_tensor_mismatch`, `torch_file_invalid`, `optimizer_state_invalid` */
  addParam({ name, param, content, file }: ParamFile): void {
    if (content === 'step') {
      this.steps.set(param, countOf(file, file.value, name));
      return;
    }
    const state = Object.hasOwn(STATE_FILES, content) ? STATE_FILES[content] : undefined;
    if (state === undefined) {
      const list = Object.keys(STATE_FILES).join(', ');
      throw invalidState(`${name} is not a state of a supported optimizer; they have ${list}`);
    }
    const value = file.value instanceof Map ? file.value.get('param') : file.value;
    const tensor = tensorOf(name, file, value, ' and is not a dict with a tensor as "param"');
    this.tensors.push({ state, param, tensor });
  }

  /** Adds `optimizer_state.pt`. In stage 3 it holds the state of one rank, and no `step.pt` exists. */
  addOptimizer(name: string, file: TorchFile): void {
    const { value } = file;
    this.groupCounts = countsIn(file, entryOf(value, 'optimizer_state_dict') ?? value, name);
    this.lossScaler = readScaler(entryOf(value, 'loss_scaler'));
  }

  /** @throws ZerofleetError `model_tensor_unexpected`, `model_tensor_mismatch` */
  runs(tensors: ReadonlyMap<string, ModuleTensor>): Run[] {
    return this.tensors.map(({ state, param: name, tensor }) => {
      const { file, shape } = tensor;
      const param = tensors.get(name);
      if (param === undefined)
        throw problem(
          'model_tensor_unexpected',
          `${file}: not a parameter of the model in config.json`,
          file,
        );
      // ZeRO stage 3 saves flat tensors; the elements and their order are the same.
      const flat = shape.length === 1 && shape[0] === param.numel;
      if (!flat && shape.join() !== param.shape.join())
        throw problem(
          'model_tensor_mismatch',
          `${file}: it has the shape [${shape}]; config.json requires [${param.shape}]`,
          file,
        );
      return runOf(tensor, { state, param: name, begin: 0, offset: 0, count: param.numel });
    });
  }

  /** Parameters with a step count, which may be the only state of their optimizer. */
  counted(tensors: ReadonlyMap<string, ModuleTensor>): string[] {
    return [...this.steps.keys()].flatMap((name) =>
      (tensors.get(name)?.params ?? []).map((param) => param.name),
    );
  }

  /** Update counts. Those of the groups only count where a trained parameter has none of its own. */
  counts(areComplete: boolean): number[] {
    return [...this.steps.values(), ...(areComplete ? [] : this.groupCounts)];
  }

  readonly nameOf = stateFile;
}
