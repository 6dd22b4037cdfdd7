import type { CheckpointLoad, RangeChecksum, RetryPolicy } from '../../contracts/rank-protocol.js';
import { type Manifest, statesOf } from '../../platform/checkpoint/manifest.js';
import { type PlannedRead, planReads, type WantedSlice } from '../../platform/checkpoint/read-plan.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { type Fetch, planFetches, rangeChecksums } from '../checkpoint/chunks.js';
import { checkFits, type TrainedState } from '../checkpoint/fit.js';
import { readManifest } from '../checkpoint/read-manifest.js';
import { isRetryable } from '../errors.js';
import type { RankTrainer } from '../native/adapter.js';
import { retry } from '../retry.js';
import { inParallel, PARALLEL_FETCHES } from './parallel.js';

export interface LoadOptions {
  objects: ObjectStore;
  source: CheckpointLoad;
  trainer: RankTrainer;
  /** What the job trains, and what it needs of the checkpoint. */
  state: TrainedState;
  retry: RetryPolicy;
}

export interface LoadedPart {
  manifest: Manifest;
  /** Checksums of everything that was read. */
  ranges: RangeChecksum[];
}

/**
 * Reads what this rank owns out of a checkpoint that any number of ranks wrote: just those bytes, each once. The bytes are not
 * verified yet: the checksums go to the agent, which has those of all ranks.
 * @throws errors of the object store; `manifest_invalid`, `checkpoint_incomplete`, `checkpoint_mismatch`
 */
export async function loadCheckpoint(options: LoadOptions): Promise<LoadedPart> {
  const { objects, source, state, trainer, retry: policy } = options;
  const { directory } = source;
  const manifest = await retry(() => readManifest(objects, directory), policy, { retryable: isRetryable });
  checkFits(manifest, state, source.restore);
  const fetches = planFetches(planReads(manifest, wantedSlices(options)));
  const index = new Map(state.params.map(({ name }, i) => [name, i]));
  const ranges: RangeChecksum[] = [];

  const load = async (fetch: Fetch<PlannedRead>): Promise<void> => {
    const { file, begin, end } = fetch;
    const bytes = await retry(() => objects.get(`${directory}/${file}`, { begin, end }), policy, {
      retryable: isRetryable,
    });
    ranges.push(...rangeChecksums(fetch, bytes));
    for (const piece of fetch.pieces) {
      const data = bytes.subarray(piece.byte_begin - begin, piece.byte_end - begin);
      trainer.load(piece.state, index.get(piece.param) ?? -1, piece.begin, data);
    }
  };
  await inParallel(fetches, PARALLEL_FETCHES, load);

  return { manifest, ranges };
}

/** What this rank owns, state by state: all states for a full restore, else the weights alone. */
function wantedSlices({ source, state, trainer }: LoadOptions): WantedSlice[] {
  const owned = trainer.slices();
  const states = source.restore === 'full' ? state.states : (['master'] as const);
  return states.flatMap((name) =>
    owned.flatMap(({ param: index, begin, end }) => {
      const param = state.params[index];
      if (!param) throw new Error(`the core owns parameter ${index}, but has ${state.params.length}`);
      return statesOf(param, states).includes(name) ? [{ state: name, param: param.name, begin, end }] : [];
    }),
  );
}
