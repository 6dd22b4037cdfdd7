import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { CheckpointLoad, LossScalerState, TrainingPosition } from '../../contracts/rank-protocol.js';
import type { Manifest } from '../../platform/checkpoint/manifest.js';

type LossScale = ResolvedJobSpec['train']['loss_scale'];

/**
 * Returns the position of a job after it loaded a checkpoint. Its own one, or that of a fork, restores the position. Another job's leaves
 * it before its first step: samples, learning rate and overrides start from the beginning. A full restore then sets the number of optimizer
 * updates, and the state of a scaler of the same type.
 */
export function positionAfterLoad(
  manifest: Manifest,
  { own, restore }: Pick<CheckpointLoad, 'own' | 'restore'>,
  lossScale: LossScale,
): TrainingPosition {
  const { type, ...loss_scaler } = manifest.loss_scaler;
  if (own) {
    const { step, optimizer_steps, skipped_steps } = manifest;
    // A fork may have another type of scaler.
    const scaler = type === lossScale.type ? loss_scaler : initialLossScaler(lossScale);
    return { step, optimizer_steps, skipped_steps, loss_scaler: scaler };
  }
  const first = firstPosition(lossScale);
  if (restore !== 'full') return first;
  const { optimizer_steps } = manifest;
  return { ...first, optimizer_steps, ...(type === lossScale.type ? { loss_scaler } : {}) };
}

/** Returns the position before the first step, with a fresh optimizer. */
export function firstPosition(lossScale: LossScale): TrainingPosition {
  return {
    step: 0,
    optimizer_steps: 0,
    skipped_steps: 0,
    loss_scaler: initialLossScaler(lossScale),
  };
}

/** Returns the state of a fresh scaler. */
export function initialLossScaler(lossScale: LossScale): LossScalerState {
  const { type, initial_scale = 1, hysteresis = 1 } = lossScale;
  const scale = type === 'none' ? 1 : initial_scale;
  return { scale, iteration: 0, last_overflow_iteration: -1, hysteresis, skipped_in_a_row: 0 };
}
