import type { CheckpointLoad, RangeChecksum, RetryPolicy } from '../../../contracts/rank-protocol.js';
import type { Manifest } from '../../../formats/checkpoint/manifest.js';
import { planReads, type Wanted } from '../../../formats/checkpoint/read-plan.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';
import type { RankTrainer } from '../../shared/native/adapter.js';
import { readManifest } from '../../shared/read-manifest.js';
import { planFetches } from './chunks.js';
import { checkFits, type TrainedState } from './fit.js';
import { readFetches } from './read-fetches.js';

interface LoadOptions {
  objects: ObjectStore;
  source: CheckpointLoad;
  trainer: RankTrainer;
  /** Parameters and optimizer of the job. */
  state: TrainedState;
  retry: RetryPolicy;
}

interface LoadedPart {
  manifest: Manifest;
  /** Checksums of all bytes read. */
  ranges: RangeChecksum[];
}

/**
 * Reads this rank's part of a checkpoint that any number of ranks wrote: only those bytes, each once. The bytes are not
 * verified here: the checksums go to the agent, which has those of all ranks.
 * @throws errors of the object store; `manifest_invalid`, `checkpoint_incomplete`, `checkpoint_mismatch`
 */
export async function loadCheckpoint(options: LoadOptions): Promise<LoadedPart> {
  const { objects, source, state, trainer, retry: policy } = options;
  const { directory } = source;
  const manifest = await retryTransient(() => readManifest(objects, directory), policy);
  checkFits(manifest, state, source.restore);
  const fetches = planFetches(await planReads(manifest, wanted(options, manifest.params.length)));
  const index = new Map(state.params.map(({ name }, i) => [name, i]));
  const ranges = await readFetches(fetches, { objects, directory, retry: policy }, (piece, bytes) =>
    trainer.load(piece.state, index.get(piece.param) ?? -1, piece.begin, bytes),
  );
  return { manifest, ranges };
}

/**
 * Returns what this rank owns of the first `num_params` parameters: all states for a full restore, otherwise only the
 * weights.
 */
function wanted({ source, state, trainer }: LoadOptions, numParams: number): Wanted {
  const slices = trainer.slices().flatMap(({ param: index, begin, end }) => {
    const param = state.params[index];
    if (!param) throw new Error(`the core owns parameter ${index}, but has ${state.params.length}`);
    return index < numParams ? [{ param: param.name, begin, end }] : [];
  });
  return { states: source.restore === 'weights' ? ['master'] : state.states, slices };
}
