import type { ModelLoad, ParamRecord, RangeChecksum, RetryPolicy } from '../../contracts/rank-protocol.js';
import {
  checkParams,
  planWeightReads,
  readWeights,
  type WeightRead,
} from '../../platform/models/read-weights.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { ELEMENT_BYTES } from '../../platform/safetensors/header.js';
import { type Fetch, planFetches, rangeChecksums } from '../checkpoint/chunks.js';
import { isRetryable } from '../errors.js';
import type { RankTrainer } from '../native/adapter.js';
import { retry } from '../retry.js';
import { inParallel, PARALLEL_FETCHES } from './parallel.js';
import { widenToFp32 } from './widen.js';

export interface LoadModelOptions {
  objects: ObjectStore;
  source: ModelLoad;
  trainer: Pick<RankTrainer, 'slices' | 'load'>;
  /** Of the model that is trained, in canonical order. */
  params: readonly Pick<ParamRecord, 'name' | 'shape'>[];
  retry: RetryPolicy;
}

/**
 * Reads what this rank owns out of the files of a model: just those bytes, each once, whatever their dtype is. Element by element the
 * master weights are the stored values, so they don't depend on who reads which of them. The bytes are not verified yet: the
 * checksums go to the agent, which has those of all ranks.
 * @returns checksums of everything that was read
 * @throws ZerofleetError `model_corrupt`; errors of the object store
 */
export async function loadModel(options: LoadModelOptions): Promise<RangeChecksum[]> {
  const { objects, source, trainer, params, retry: policy } = options;
  const { directory } = source;
  const weights = await retry(() => readWeights(objects, directory), policy, { retryable: isRetryable });
  checkParams(weights, params);
  const index = new Map(params.map(({ name }, i) => [name, i]));
  const wanted = trainer.slices().map(({ param, begin, end }) => {
    const name = params[param]?.name;
    if (name === undefined) throw new Error(`the core owns parameter ${param}, but has ${params.length}`);
    return { param: name, begin, end };
  });
  const fetches = planFetches(planWeightReads(weights, wanted), ({ dtype }) => ELEMENT_BYTES[dtype]);
  const ranges: RangeChecksum[] = [];

  const load = async (fetch: Fetch<WeightRead>): Promise<void> => {
    const { file, begin, end } = fetch;
    const bytes = await retry(() => objects.get(`${directory}/${file}`, { begin, end }), policy, {
      retryable: isRetryable,
    });
    ranges.push(...rangeChecksums(fetch, bytes));
    for (const piece of fetch.pieces) {
      const stored = bytes.subarray(piece.byte_begin - begin, piece.byte_end - begin);
      trainer.load('master', index.get(piece.param) ?? -1, piece.begin, widenToFp32(piece.dtype, stored));
    }
  };
  await inParallel(fetches, PARALLEL_FETCHES, load);
  return ranges;
}
