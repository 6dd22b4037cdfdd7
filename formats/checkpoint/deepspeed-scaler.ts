/**
 * Loss scaler among the optimizer states of a DeepSpeed checkpoint: an object that it pickles by class and attributes.
 */
import { ZerofleetError } from '../../contracts/index.js';
import {
  Global,
  numberOf,
  PyFloat,
  PyRecord,
  type TorchDict,
  type TorchValue,
} from '../torch-file/values.js';
import type { Manifest } from './manifest.js';

type SavedScaler = Manifest['loss_scaler'];

export interface ScalerSettings {
  window: number;
  hysteresis: number;
  consecutive_hysteresis: boolean;
  min_scale: number;
  /** True if an overflow at `min_scale` ends the training. */
  may_diverge: boolean;
}

const MODULE = 'deepspeed.runtime.fp16.loss_scaler';
const DYNAMIC = `${MODULE}.DynamicLossScaler`;
const STATIC = `${MODULE}.LossScaler`;

/** DeepSpeed's names of the state of a dynamic scaler. */
const STATE = {
  scale: 'cur_scale',
  iteration: 'cur_iter',
  last_overflow_iteration: 'last_overflow_iter',
  hysteresis: 'cur_hysteresis',
} as const;

/**
 * Returns the state of a dynamic scaler; null for a static one and for other values.
 * @throws ZerofleetError `optimizer_state_invalid`
 */
export function readScaler(value: TorchValue | undefined): SavedScaler | null {
  if (!(value instanceof PyRecord) || value.name !== DYNAMIC) return null;
  const given = (name: keyof typeof STATE) => numberOf(value.attributes.get(STATE[name])) ?? Number.NaN;
  const [scale, iteration, lastOverflowIteration, hysteresis] = [
    given('scale'),
    given('iteration'),
    given('last_overflow_iteration'),
    given('hysteresis'),
  ];
  const isPossible =
    Number.isFinite(scale) &&
    scale > 0 &&
    [iteration, lastOverflowIteration, hysteresis].every(Number.isSafeInteger) &&
    lastOverflowIteration >= -1 &&
    lastOverflowIteration < iteration &&
    hysteresis >= 1;
  const state = { scale, iteration, last_overflow_iteration: lastOverflowIteration, hysteresis };
  if (isPossible) return { type: 'dynamic', ...state, skipped_in_a_row: 0 };
  const detail = `loss_scaler has a state that no loss scaler can have: ${JSON.stringify(state)}`;
  throw new ZerofleetError('optimizer_state_invalid', detail);
}

/** Returns the entries of the optimizer states that describe a scaler; none for a training without one. */
export function scalerEntries(saved: SavedScaler, settings: ScalerSettings): TorchDict {
  if (saved.type === 'none') return new Map();
  const scaler = new PyRecord(saved.type === 'dynamic' ? DYNAMIC : STATIC, []);
  const dynamic = saved.type === 'dynamic';
  scaler.attributes = new Map<string, TorchValue>([
    [STATE.scale, new PyFloat(saved.scale)],
    ['dynamic', dynamic],
    ...(dynamic ? dynamicAttributes(saved, settings) : []),
  ]);
  return new Map<string, TorchValue>([
    ['loss_scaler', scaler],
    ['dynamic_loss_scale', dynamic],
  ]);
}

function dynamicAttributes(saved: SavedScaler, settings: ScalerSettings): [string, TorchValue][] {
  return [
    [STATE.iteration, saved.iteration],
    [STATE.last_overflow_iteration, saved.last_overflow_iteration],
    ['scale_factor', new PyFloat(2)],
    ['scale_window', settings.window],
    ['min_scale', new PyFloat(settings.min_scale)],
    ['delayed_shift', settings.hysteresis],
    [STATE.hysteresis, saved.hysteresis],
    ['consecutive_hysteresis', settings.consecutive_hysteresis],
    ['raise_error_at_min_scale', settings.may_diverge],
    ['dtype', new Global('torch.float16')],
  ];
}
