import { holds, type Key, mapped, only, section } from './key.js';

const MASTER_FORMATS = 'master weights are fp32, or fp16 with zero.offload cpu and train.precision fp16';

export const FP16: Key = section({
  enabled: mapped('boolean', 'train.precision: fp16'),
  auto_cast: holds('boolean', 'inputs are tokens and need no cast'),
  fused_mode: holds('boolean', 'the update is always one pass'),
  loss_scale: mapped(
    'number',
    'train.loss_scale.type: dynamic for 0, otherwise static with this initial_scale',
  ),
  initial_scale_power: mapped('integer', 'train.loss_scale.initial_scale = 2^initial_scale_power'),
  loss_scale_window: mapped('integer', 'train.loss_scale.window'),
  hysteresis: mapped('integer', 'train.loss_scale.hysteresis'),
  consecutive_hysteresis: mapped('boolean', 'train.loss_scale.consecutive_hysteresis'),
  min_loss_scale: mapped('number', 'train.loss_scale.min_scale'),
  fp16_master_weights_and_grads: mapped(
    'boolean',
    'zero.master_dtype: fp16 and zero.grad_accum_dtype: fp16, which need zero.offload: cpu',
  ),
});

export const BF16: Key = section({
  enabled: mapped('boolean', 'train.precision: bf16'),
  immediate_grad_update: holds('boolean', 'each gradient is added as soon as it is computed'),
  check_grad_overflow: only([true], 'a step whose gradients are not finite is always skipped: remove it'),
  bf16_master_weights_and_grads: only([false], MASTER_FORMATS),
  bf16_optimizer_states: only([false], 'optimizer states are fp32'),
});

export const DATA_TYPES: Key = section({
  grad_accum_dtype: mapped(
    'string',
    'zero.grad_accum_dtype; fp16 by default with fp16, otherwise fp32, also where DeepSpeed uses bf16',
  ),
  param_dtype: only([], 'parameters have the dtype of train.precision'),
  buffer_dtype: only([], 'the model has no buffers'),
});
