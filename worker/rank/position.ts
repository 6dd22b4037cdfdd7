import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { CheckpointLoad, LossScalerState, TrainingPosition } from '../../contracts/rank-protocol.js';
import type { Manifest } from '../../platform/checkpoint/manifest.js';

type LossScale = ResolvedJobSpec['train']['loss_scale'];

/**
 * Where a job is when it has loaded a checkpoint. With its own one it is where it was, and so is a fork. With another job's it is before its
 * first step: samples, learning rate and overrides are its own from the beginning. A full restore then brings the number of
 * updates that the optimizer's state has seen, and the scaler's state when the scaler is of the same kind.
 */
export function positionAfterLoad(
  manifest: Manifest,
  { own, restore }: Pick<CheckpointLoad, 'own' | 'restore'>,
  lossScale: LossScale,
): TrainingPosition {
  const { type, ...loss_scaler } = manifest.loss_scaler;
  if (own) {
    const { step, optimizer_steps, skipped_steps } = manifest;
    // A fork may have another kind of scaler.
    const scaler = type === lossScale.type ? loss_scaler : initialLossScaler(lossScale);
    return { step, optimizer_steps, skipped_steps, loss_scaler: scaler };
  }
  const first = firstPosition(lossScale);
  if (restore !== 'full') return first;
  const { optimizer_steps } = manifest;
  return { ...first, optimizer_steps, ...(type === lossScale.type ? { loss_scaler } : {}) };
}

/** Before the first step, with an optimizer that has seen nothing. */
export function firstPosition(lossScale: LossScale): TrainingPosition {
  return {
    step: 0,
    optimizer_steps: 0,
    skipped_steps: 0,
    loss_scaler: initialLossScaler(lossScale),
  };
}

/** The state of a scaler that has seen no step. */
export function initialLossScaler(lossScale: LossScale): LossScalerState {
  const { type, initial_scale = 1, hysteresis = 1 } = lossScale;
  const scale = type === 'none' ? 1 : initial_scale;
  return { scale, iteration: 0, last_overflow_iteration: -1, hysteresis, skipped_in_a_row: 0 };
}
