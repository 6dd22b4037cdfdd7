import { ZerofleetError } from '../../../contracts/index.js';
import type { ParamRecord, Restore, StateName } from '../../../contracts/rank-protocol.js';
import type { Manifest } from '../../../formats/checkpoint/manifest.js';
import type { OptimizerType } from '../../../job-document/index.js';

/** Parameters and optimizer of a training, which a loaded checkpoint must match. */
export interface TrainedState {
  params: readonly ParamRecord[];
  optimizer: OptimizerType;
  /** States of the optimizer. */
  states: readonly StateName[];
  /** Number of the model's own parameters, which are before those of adapters. */
  num_base: number;
}

/**
 * Checks that a checkpoint fits a training: the same parameters; beyond a restore of the weights also the same
 * optimizer and the same frozen parameters.
 * @throws ZerofleetError `checkpoint_mismatch` naming the first difference
 */
export function checkFits(manifest: Manifest, state: TrainedState, restore: Restore): void {
  const difference =
    paramsDifference(manifest.params, startsFrom(manifest, state, restore)) ??
    (restore === 'weights' ? null : optimizerDifference(manifest, state));
  if (difference === null) return;
  throw new ZerofleetError(
    'checkpoint_mismatch',
    `checkpoint ${manifest.id} of job ${manifest.job_id} does not fit: ${difference}`,
  );
}

/** Returns the parameters to load. Adapters that the checkpoint does not have begin with their initial values. */
function startsFrom(manifest: Manifest, { params, num_base }: TrainedState, restore: Restore): Params {
  const hasNone = manifest.params.length === num_base;
  return hasNone && restore === 'weights' ? params.slice(0, num_base) : params;
}

type Params = readonly Pick<ParamRecord, 'name' | 'shape' | 'frozen'>[];

function paramsDifference(saved: Params, wanted: Params): string | null {
  const shapes = new Map(saved.map(({ name, shape }) => [name, shape]));
  for (const { name, shape } of wanted) {
    const storedShape = shapes.get(name);
    if (!storedShape) return `it has no parameter ${name}`;
    if (storedShape.join() !== shape.join())
      return `${name} has shape [${storedShape}] there and [${shape}] here`;
    shapes.delete(name);
  }
  const extra = shapes.keys().next().value;
  return extra === undefined ? null : `its parameter ${extra} does not exist here`;
}

function optimizerDifference(manifest: Manifest, { params, optimizer, states }: TrainedState): string | null {
  if (manifest.optimizer !== optimizer || manifest.states.join() !== states.join()) {
    const kept = (names: readonly string[]) => names.join(', ');
    return (
      `it was trained with ${manifest.optimizer} (${kept(manifest.states)}), the job has ${optimizer} ` +
      `(${kept(states)}); only its weights can be restored`
    );
  }
  const frozen = new Map(manifest.params.map(({ name, frozen }) => [name, frozen]));
  const changed = params.find((param) => frozen.get(param.name) !== param.frozen);
  if (!changed) return null;
  const [stored, here] = changed.frozen ? ['is trained', 'is frozen'] : ['is frozen', 'is trained'];
  return `${changed.name} ${stored} there and ${here} here; only its weights can be restored`;
}
