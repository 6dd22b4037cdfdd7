import type { StoredCall } from '../../../contracts/index.js';
import type { RankError } from '../../../contracts/rank-protocol.js';
import type { RankTrainer } from '../../shared/native/adapter.js';
import type { RankContext } from '../context.js';
import type { TrainedState } from '../load/fit.js';
import { loadCheckpoint } from '../load/load-checkpoint.js';
import { positionAfterLoad } from '../position.js';

export interface LoadTarget extends Pick<RankContext, 'channel' | 'inbox' | 'start' | 'objects'> {
  trainer: RankTrainer;
  state: TrainedState;
}

export type LoadStateCall = Extract<StoredCall, { type: 'load_state' }>;

/**
 * Replaces the state by that of a checkpoint. The load is a step of the session: steps only rise, so that the newest
 * checkpoint is always the one with the last step.
 * @param at position of the session after the load
 * @returns the agent's reason to refuse the checkpoint, or null
 * @throws ZerofleetError `checkpoint_mismatch`, before anything has changed
 */
export async function loadState(
  { channel, inbox, start, objects, trainer, state }: LoadTarget,
  { number, call }: { number: number; call: LoadStateCall },
  at: { step: number; skipped_steps: number },
): Promise<RankError | null> {
  const { checkpoint, prefix: directory, optimizer } = call;
  if (start.rank === 0) await channel.send({ kind: 'load_call', number, checkpoint, directory });
  const { error } = await inbox.loadAnswers.take();
  if (error !== null) return error;
  const source = {
    kind: 'checkpoint',
    directory,
    restore: optimizer ? 'full' : 'weights',
    own: false,
  } as const;
  const retry = start.save.final;
  const { manifest, ranges } = await loadCheckpoint({ objects, source, trainer, state, retry });
  await channel.send({ kind: 'loaded', ranges, base: null });
  await inbox.proceeds.take();
  const position = positionAfterLoad(manifest, source, start.spec.train.loss_scale);
  await trainer.finishLoad({ ...position, ...at, restore: source.restore });
  return null;
}
