import type { ModelLoad, RangeChecksum, RetryPolicy } from '../../../contracts/rank-protocol.js';
import { isMoment } from '../../../contracts/state-records.js';
import { statesOf } from '../../../formats/checkpoint/shard-contents.js';
import {
  checkParams,
  planWeightReads,
  readWeights,
  type WantedElements,
} from '../../../formats/models/read-weights.js';
import type { OptimizerProgress } from '../../../formats/models/weights.js';
import { ELEMENT_BYTES } from '../../../formats/safetensors/header.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';
import type { RankTrainer } from '../../shared/native/adapter.js';
import { widenToFp32 } from '../../shared/widen.js';
import { planFetches } from './chunks.js';
import type { TrainedState } from './fit.js';
import { readFetches } from './read-fetches.js';

interface LoadModelOptions {
  objects: ObjectStore;
  source: ModelLoad;
  trainer: Pick<RankTrainer, 'slices' | 'load'>;
  state: Pick<TrainedState, 'params' | 'states' | 'num_base'>;
  retry: RetryPolicy;
}

interface LoadedModel {
  ranges: RangeChecksum[];
  /** Null if the optimizer starts fresh. */
  optimizer: OptimizerProgress | null;
}

/**
 * Reads this rank's part of a model's files: only those bytes, each once, in any dtype. The master weights equal the
 * stored values element by element, so they do not depend on the sharding. The bytes are not verified here: the
 * checksums go to the agent, which has those of all ranks.
 * @returns checksums of all bytes read, and the progress of the optimizer state
 * @throws ZerofleetError `model_corrupt`; errors of the object store
 */
export async function loadModel(options: LoadModelOptions): Promise<LoadedModel> {
  const { objects, source, state, retry: policy } = options;
  const { directory } = source;
  const weights = await retryTransient(() => readWeights(objects, directory), policy);
  const { params, num_base } = state;
  const stored = source.adapters_only ? params.filter(({ base }) => !base) : params.slice(0, num_base);
  checkParams(weights, stored);
  const index = new Map(params.map(({ name }, i) => [name, i]));
  const wanted = wantedElements(options, new Set(stored));
  const fetches = planFetches(planWeightReads(weights, wanted), ({ dtype }) => ELEMENT_BYTES[dtype]);
  const ranges = await readFetches(fetches, { objects, directory, retry: policy }, (piece, bytes) =>
    loadPiece(options, piece, index.get(piece.param) ?? -1, widenToFp32(piece.dtype, bytes)),
  );
  const { optimizer_steps: steps = 0, loss_scaler = null } = weights;
  return { ranges, optimizer: source.restore === 'weights' ? null : { steps, loss_scaler } };
}

/** Loads a piece of a parameter. Uploaded states have no average of the weights: it begins with the weights. */
function loadPiece(
  { source, trainer, state: { params, states } }: LoadModelOptions,
  { state, begin }: Pick<WantedElements, 'state' | 'begin'>,
  param: number,
  bytes: Uint8Array,
): void {
  trainer.load(state, param, begin, bytes);
  if (state !== 'master' || source.restore === 'weights' || params[param]?.frozen) return;
  const averages = states.filter((name) => name !== 'master' && !isMoment(name));
  for (const average of averages) trainer.load(average, param, begin, bytes);
}

/**
 * Returns what this rank owns of the stored parameters: the weights, and for a full restore the optimizer states of
 * each trained one that a model can have. Adapters that are not stored begin with their initial values.
 */
function wantedElements(
  { source, trainer, state }: LoadModelOptions,
  stored: ReadonlySet<unknown>,
): WantedElements[] {
  const owned = trainer.slices();
  const wanted =
    source.restore === 'weights'
      ? (['master'] as const)
      : state.states.filter((name) => name === 'master' || isMoment(name));
  return owned.flatMap(({ param: index, begin, end }) => {
    const param = state.params[index];
    if (!param || !stored.has(param)) return [];
    return statesOf(param, wanted).map((state) => ({ state, param: param.name, begin, end }));
  });
}
