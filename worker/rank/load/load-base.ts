import type { BaseLoad, ParamRecord, RangeChecksum, RetryPolicy } from '../../../contracts/rank-protocol.js';
import { planReads } from '../../../formats/checkpoint/read-plan.js';
import { planWeightReads, readWeights } from '../../../formats/models/read-weights.js';
import { ELEMENT_BYTES } from '../../../formats/safetensors/header.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';
import type { RankTrainer } from '../../shared/native/adapter.js';
import { readManifest } from '../../shared/read-manifest.js';
import { widenToFp32 } from '../../shared/widen.js';
import { planFetches } from './chunks.js';
import { readFetches } from './read-fetches.js';

interface LoadBaseOptions {
  objects: ObjectStore;
  source: BaseLoad;
  trainer: Pick<RankTrainer, 'baseSlices' | 'initializeBase' | 'load'>;
  /** Parameters of the job, in canonical order. */
  params: readonly Pick<ParamRecord, 'name'>[];
  retry: RetryPolicy;
}

/**
 * Reads this rank's part of the frozen base under adapters: only those bytes, each once. They are not verified here:
 * the checksums go to the agent.
 * @returns checksums of all bytes read
 * @throws ZerofleetError `model_corrupt`, `manifest_invalid`, `checkpoint_incomplete`; errors of the object store
 */
export async function loadBase(options: LoadBaseOptions): Promise<RangeChecksum[]> {
  const { objects, source, trainer, params, retry: policy } = options;
  if (source.kind === 'seed') {
    await trainer.initializeBase(source.seed);
    return [];
  }
  const { directory } = source;
  const index = new Map(params.map(({ name }, i) => [name, i]));
  const slices = trainer.baseSlices().map(({ param, begin, end }) => {
    const name = params[param]?.name ?? '';
    return { param: name, begin, end };
  });
  const load = (param: string, begin: number, fp32: Uint8Array) =>
    trainer.load('master', index.get(param) ?? -1, begin, fp32);
  const from = { objects, directory, retry: policy };
  if (source.kind === 'model') {
    const weights = await retryTransient(() => readWeights(objects, directory), policy);
    const wanted = slices.map((slice) => ({ ...slice, state: 'master' as const }));
    const fetches = planFetches(planWeightReads(weights, wanted), ({ dtype }) => ELEMENT_BYTES[dtype]);
    return readFetches(fetches, from, ({ param, begin, dtype }, bytes) =>
      load(param, begin, widenToFp32(dtype, bytes)),
    );
  }
  const manifest = await retryTransient(() => readManifest(objects, directory), policy);
  const fetches = planFetches(await planReads(manifest, { states: ['master'], slices }));
  return readFetches(fetches, from, ({ param, begin }, bytes) => load(param, begin, bytes));
}
