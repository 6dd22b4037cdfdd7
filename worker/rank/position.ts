import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { CheckpointLoad, LossScalerState, TrainingPosition } from '../../contracts/rank-protocol.js';
import type { Manifest } from '../../formats/checkpoint/manifest.js';
import type { OptimizerProgress } from '../../formats/models/weights.js';

type LossScale = ResolvedJobSpec['train']['loss_scale'];

/**
 * Returns the position of a job after it loaded a checkpoint. Its own one, or that of a fork, restores the position.
 * Another job's leaves it before its first step: samples, learning rate and overrides start from the beginning. A full
 * restore then sets the number of optimizer updates, and the state of a scaler of the same type.
 */
export function positionAfterLoad(
  manifest: Manifest,
  { own, restore }: Pick<CheckpointLoad, 'own' | 'restore'>,
  lossScale: LossScale,
): TrainingPosition {
  const { step, optimizer_steps: steps, skipped_steps, loss_scaler } = manifest;
  const restored = positionAfterRestore(restore === 'weights' ? null : { steps, loss_scaler }, lossScale);
  return own ? { ...restored, step, skipped_steps } : restored;
}

/**
 * Returns the position of a job before its first step, which continues with an optimizer's state and with that of a
 * loss scaler of the same type.
 * @param optimizer null for a fresh one
 */
export function positionAfterRestore(
  optimizer: OptimizerProgress | null,
  lossScale: LossScale,
): TrainingPosition {
  const lossScaler = restoredScaler(optimizer?.loss_scaler ?? null, lossScale);
  return { step: 0, optimizer_steps: optimizer?.steps ?? 0, skipped_steps: 0, loss_scaler: lossScaler };
}

function restoredScaler(saved: OptimizerProgress['loss_scaler'], lossScale: LossScale): LossScalerState {
  if (saved?.type !== lossScale.type) return initialLossScaler(lossScale);
  const { type: _, ...state } = saved;
  return state;
}

/** Returns the state of a fresh scaler. */
export function initialLossScaler(lossScale: LossScale): LossScalerState {
  const { type, initial_scale = 1, hysteresis = 1 } = lossScale;
  const scale = type === 'none' ? 1 : initial_scale;
  return { scale, iteration: 0, last_overflow_iteration: -1, hysteresis, skipped_in_a_row: 0 };
}
