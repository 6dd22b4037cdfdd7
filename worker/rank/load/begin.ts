import type {
  BaseLoad,
  CallPosition,
  EarlyStoppingState,
  LoadedBase,
  LoadSource,
  RangeChecksum,
  Restore,
  TrainingPosition,
} from '../../../contracts/rank-protocol.js';
import type { Manifest } from '../../../formats/checkpoint/manifest.js';
import { NOT_EVALUATED } from '../../../job-document/index.js';
import { baseError } from '../../shared/errors.js';
import type { RankTrainer } from '../../shared/native/adapter.js';
import type { RankContext } from '../context.js';
import { positionAfterLoad, positionAfterRestore } from '../position.js';
import { beginReference, type ContinuedCheckpoint, type Reference } from '../reference.js';
import type { TrainedState } from './fit.js';
import { loadBase } from './load-base.js';
import { loadCheckpoint } from './load-checkpoint.js';
import { loadModel } from './load-model.js';

/** State before the first step of a generation. */
export interface Begun {
  at: TrainingPosition;
  /** Calls that the state includes. */
  calls: CallPosition;
  early_stopping: EarlyStoppingState | null;
  /** This rank's share of the digest of the base; null without adapters. */
  base_digest_part: string | null;
  reference: Reference | null;
}

const NO_CALLS: CallPosition = { number: 0, tokens: 0 };

/** Initializes or loads the state. */
export async function begin(ctx: RankContext, trainer: RankTrainer, state: TrainedState): Promise<Begun> {
  const { channel, inbox, start } = ctx;
  const source = start.load;
  const fresh = start.spec.train.early_stopping === undefined ? null : NOT_EVALUATED;
  if (source === null) {
    await trainer.initialize();
    const reference = await beginReference(ctx, trainer, null);
    const baseDigestPart = start.base === null ? null : await trainer.baseDigestPart();
    return {
      at: positionAfterRestore(null, start.spec.train.loss_scale),
      calls: NO_CALLS,
      early_stopping: fresh,
      base_digest_part: baseDigestPart,
      reference,
    };
  }
  // The source may have no adapters. A base would take long, and is loaded.
  if (state.num_base < state.params.length) await trainer.initialize(state.num_base);
  const base = start.base === null ? null : await openBase(ctx, start.base, trainer, state);
  const { ranges, at, restore, own, continued } = await load(ctx, source, trainer, state);
  await channel.send({ kind: 'loaded', ranges, base });
  // A checksum covers bytes of several ranks, so only the agent can verify it.
  await inbox.proceeds.take();
  await trainer.finishLoad({ ...at, restore });
  const reference = await beginReference(ctx, trainer, continued);
  return {
    at,
    calls: own?.calls ?? NO_CALLS,
    early_stopping: own?.early_stopping ?? fresh,
    base_digest_part: base?.digest_part ?? null,
    reference,
  };
}

/** Loads the base of adapters. @throws ZerofleetError `base_damaged`: the job's own checkpoint may be whole */
async function openBase(
  { start, objects }: RankContext,
  source: BaseLoad,
  trainer: RankTrainer,
  { params }: TrainedState,
): Promise<LoadedBase> {
  try {
    const ranges = await loadBase({ objects, source, trainer, params, retry: start.save.final });
    return { ranges, digest_part: await trainer.baseDigestPart() };
  } catch (error) {
    throw baseError(error);
  }
}

interface Loaded {
  /** Checksums of all bytes read. */
  ranges: RangeChecksum[];
  at: TrainingPosition;
  restore: Restore;
  /** The job's own checkpoint; null for another source. */
  own: Pick<Manifest, 'early_stopping' | 'calls'> | null;
  /** Null if a new training begins. */
  continued: ContinuedCheckpoint | null;
}

async function load(
  { start, objects }: RankContext,
  source: LoadSource,
  trainer: RankTrainer,
  state: TrainedState,
): Promise<Loaded> {
  const retry = start.save.final;
  const { loss_scale } = start.spec.train;
  if (source.kind === 'model') {
    const model = await loadModel({ objects, source, trainer, state, retry });
    const { ranges, optimizer } = model;
    const at = positionAfterRestore(optimizer, loss_scale);
    return { ranges, at, restore: source.restore, own: null, continued: null };
  }
  const { manifest, ranges } = await loadCheckpoint({ objects, source, trainer, state, retry });
  const at = positionAfterLoad(manifest, source, loss_scale);
  const { restore, directory } = source;
  return {
    ranges,
    at,
    restore,
    // A fork saves and exports its own best checkpoint, so it does not continue with the evaluations of the other job.
    own: manifest.job_id === start.job_id ? manifest : null,
    continued: restore === 'weights' ? null : { directory, manifest },
  };
}
