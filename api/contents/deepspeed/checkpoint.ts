import { ZerofleetError } from '../../../contracts/index.js';
import { isMoment, type Moment, STATE_NAMES, type StateName } from '../../../contracts/state-records.js';
import type { OptimizerProgress, WeightTensor } from '../../../formats/models/weights.js';
import type { TorchFile } from '../../../formats/torch-file/read.js';
import { type ModelParam, type ModuleTensor, moduleTensors } from '../../../job-document/index.js';
import { comparedPairs, type Pair } from './module-weights.js';
import { deepSpeedFile } from './names.js';
import { CONVERT, frozenRuns, type RankFile, rawRuns } from './raw.js';
import { checkWhole, problem, type Run, runsOfParams, tensorsByFile } from './runs.js';
import { UniversalFiles } from './universal.js';
import { entryOf, itemsOf, oneCount } from './updates.js';

/** Optimizer state that was uploaded with weights. */
export interface UploadedOptimizer extends OptimizerProgress {
  /** States of each parameter besides the master weights. */
  states: Moment[];
  /** Parameters without optimizer state, because they were not trained. */
  frozen: string[];
}

interface CheckedCheckpoint {
  /** Parameters of each file, by file name. */
  tensors: Map<string, WeightTensor[]>;
  optimizer: UploadedOptimizer | null;
  /** Elements to compare. */
  pairs: Pair[];
}

/** Collects the files of a DeepSpeed checkpoint in any order. */
export class DeepSpeedCheckpoint {
  private readonly universal = new UniversalFiles();
  private readonly modelStates: RankFile[] = [];
  private readonly optimStates: RankFile[] = [];
  /** Read errors of rank files; reported only if the file is needed. */
  private readonly unread: ZerofleetError[] = [];

  /** True if there are files below `zero/`. */
  get isUniversal(): boolean {
    return !this.universal.isEmpty;
  }

  /** True if there is any file that can hold parameters. */
  get hasParams(): boolean {
    return this.isUniversal || this.optimStates.length + this.unread.length > 0;
  }

  /** @throws ZerofleetError `model_tensor_mismatch`, `torch_file_…`, `optimizer_state_invalid`; errors of `read` */
  async add(name: string, read: () => Promise<TorchFile>): Promise<void> {
    const file = deepSpeedFile(name);
    if (file === null) throw new Error(`${name} is not a file of a checkpoint`);
    if (file.kind === 'optimizer') this.universal.addOptimizer(name, await read());
    else if (file.kind === 'param') this.universal.addParam({ name, ...file, file: await read() });
    else if (file.tensor_rank > 0)
      this.unread.push(unreadable(`${name} is of a rank that has a part of each tensor; ${CONVERT}`));
    else {
      const content = await read().catch((error: unknown) => {
        if (!(error instanceof ZerofleetError)) throw error;
        this.unread.push(error);
      });
      const files = file.kind === 'model_states' ? this.modelStates : this.optimStates;
      if (content) files.push({ name, rank: file.rank, file: content });
    }
  }

  /** @throws ZerofleetError `model_tensor_…`, `optimizer_state_invalid`, `torch_file_…` */
  finish(params: readonly ModelParam[]): CheckedCheckpoint {
    const { universal, isUniversal, modelStates } = this;
    const tensors = knownTensors(params);
    const raw = isUniversal ? null : this.raw(tensors);
    const stored = raw?.runs ?? universal.runs(tensors);
    const runs = runsOfParams(stored, tensors);
    const found = new Set(runs.map(({ state }) => state));
    const states = STATE_NAMES.filter(isMoment).filter((name) => found.has(name));
    const known = new Set(runs.flatMap(({ state, param }) => (raw || state !== 'master' ? [param] : [])));
    const counted = new Set(universal.counted(tensors));
    const isTrained = ({ name }: ModelParam) => known.has(name) || counted.has(name);
    const trained = params.filter(isTrained);
    const all = [...runs, ...this.frozen(tensors, runs, trained)];
    const statesOf = (param: ModelParam): readonly StateName[] =>
      isTrained(param) ? ['master', ...states] : ['master'];
    checkWhole(all, params, statesOf, raw ? (param, state) => `${state} of ${param}` : universal.nameOf);
    const counts = raw?.counts ?? universal.counts(trained.every(({ name }) => counted.has(name)));
    const hasState = trained.length > 0 && states.length + counts.length > 0;
    const frozen = params.filter((param) => !isTrained(param)).map(({ name }) => name);
    const lossScaler = raw ? raw.loss_scaler : universal.lossScaler;
    return {
      tensors: tensorsByFile(all, params),
      optimizer: hasState ? { steps: this.updates(counts), states, frozen, loss_scaler: lossScaler } : null,
      pairs: comparedPairs(stored, modelStates, tensors),
    };
  }

  private raw(tensors: ReadonlyMap<string, ModuleTensor>): ReturnType<typeof rawRuns> {
    this.requireReadable();
    const [states] = this.modelStates;
    if (states !== undefined)
      return rawRuns(this.optimStates, tensors, itemsOf(entryOf(states.file.value, 'param_shapes')));
    const file = 'mp_rank_00_model_states.pt';
    throw problem(
      'model_tensor_missing',
      `the checkpoint has no ${file}, which says where each parameter is`,
      file,
    );
  }

  private requireReadable(): void {
    const [error] = this.unread;
    if (error !== undefined) throw error;
  }

  /** Weights of parameters that no optimizer file holds. */
  private frozen(
    tensors: ReadonlyMap<string, ModuleTensor>,
    runs: readonly Run[],
    trained: readonly ModelParam[],
  ): Run[] {
    const withMaster = new Set(runs.filter(({ state }) => state === 'master').map(({ param }) => param));
    for (const { name } of trained) withMaster.add(name);
    const missing = [...tensors.values()].filter(({ params }) =>
      params.every(({ name }) => !withMaster.has(name)),
    );
    if (missing.length > 0) this.requireReadable();
    return runsOfParams(frozenRuns(this.modelStates, missing), tensors);
  }

  /** The optimizer's update count. PyTorch's SGD has none; DeepSpeed counts its updates. */
  private updates(counts: readonly number[]): number {
    if (counts.length > 0) return oneCount(counts);
    const steps = this.modelStates.flatMap(({ file: { value } }) => {
      const [steps, skipped] = [entryOf(value, 'global_steps'), entryOf(value, 'skipped_steps')];
      return typeof steps === 'number' && typeof skipped === 'number' ? [steps - skipped] : [];
    });
    return oneCount(steps);
  }
}

/**
 * Tensors by name: those of the module in transformers 5, and each parameter by itself, as older versions have them.
 */
function knownTensors(params: readonly ModelParam[]): Map<string, ModuleTensor> {
  const alone = params.map((param) => ({ ...param, params: [param] }));
  return new Map([...alone, ...moduleTensors(params)].map((tensor) => [tensor.name, tensor]));
}

function unreadable(message: string): ZerofleetError {
  return new ZerofleetError('optimizer_state_invalid', message);
}
