import t from 'tap';
import { defaultsOf } from '../common/defaults.js';
import { resolved } from '../testing/deepspeed.js';

/** Additional fields of every resolved document of these tests. */
const PLAIN_TRAIN = {
  ...defaultsOf('TrainSpec'),
  loss_scale: { type: 'none', max_skipped_steps: 100 },
};
const PLAIN_ZERO = { ...defaultsOf('ZeroSpec'), bucket_bytes: 16_777_216, reduce_dtype: 'bf16' };

t.test('LAMB in bf16 with ZeRO-1', async (t) => {
  const spec = resolved(
    {
      train_batch_size: 64,
      gradient_accumulation_steps: 4,
      optimizer: {
        type: 'Lamb',
        params: { lr: 2e-3, weight_decay: 0.01, bias_correction: true, max_coeff: 0.3, min_coeff: 0.01 },
      },
      scheduler: {
        type: 'WarmupCosineLR',
        params: {
          total_num_steps: 1000,
          warmup_num_steps: 100,
          warmup_min_ratio: 0.25,
          cos_min_ratio: 0.5,
          warmup_type: 'linear',
        },
      },
      bf16: { enabled: true, immediate_grad_update: true, check_grad_overflow: true },
      data_types: { grad_accum_dtype: 'fp32' },
      communication_data_type: 'fp32',
      gradient_predivide_factor: 4,
      zero_optimization: { stage: 1, reduce_bucket_size: 1000, round_robin_gradients: true },
    },
    { train: { sequence_length: 64 }, zero: { lanes: 8 } },
  );
  t.same(spec.train, {
    ...PLAIN_TRAIN,
    steps: 1000,
    sequence_length: 64,
    global_batch_size: 64,
    micro_batch_size: 8,
    optimizer: {
      type: 'lamb',
      lr: 2e-3,
      weight_decay: 0.01,
      betas: [0.9, 0.999],
      eps: 1e-8,
      min_coeff: 0.01,
      max_coeff: 0.3,
      bias_correction: 'step_size',
      param_groups: [],
    },
    lr_schedule: {
      type: 'cosine',
      warmup_steps: 100,
      warmup_type: 'linear',
      warmup_start_lr: 5e-4,
      min_lr: 1e-3,
    },
    gradient_clipping: 0,
    precision: 'bf16',
  });
  t.same(spec.zero, {
    ...PLAIN_ZERO,
    stage: 1,
    lanes: 8,
    bucket_bytes: 16_384,
    reduce_dtype: 'fp32',
    gradient_predivide_factor: 4,
  });
});

t.test('every optimizer, with the defaults of DeepSpeed', async (t) => {
  const optimizer = (type: string, params?: object) => {
    const { param_groups, ...rest } = resolved(
      { optimizer: { type, ...(params && { params }) } },
      { train: { steps: 1 } },
    ).train.optimizer;
    return rest;
  };
  const adam = { lr: 1e-3, weight_decay: 0, betas: [0.9, 0.999], eps: 1e-8 };
  t.same(optimizer('Adam'), { type: 'adamw', ...adam });
  t.same(optimizer('adam', { adam_w_mode: false, torch_adam: true }), { type: 'adam', ...adam });
  t.same(optimizer('AdamW', { adam_w_mode: false }), { type: 'adamw', ...adam }, 'as in DeepSpeed');
  const lamb = { type: 'lamb', ...adam, min_coeff: 0.01, max_coeff: 10 };
  t.same(optimizer('Lamb'), { ...lamb, bias_correction: 'step_size' });
  t.same(optimizer('Lamb', { bias_correction: true }), { ...lamb, bias_correction: 'step_size' });
  t.same(optimizer('Lamb', { bias_correction: false }), { ...lamb, bias_correction: 'none' });
  t.same(optimizer('Lion', { lr: 1e-4 }), { type: 'lion', lr: 1e-4, weight_decay: 0, betas: [0.9, 0.999] });
  t.same(optimizer('Adagrad'), {
    type: 'adagrad',
    lr: 1e-2,
    weight_decay: 0,
    eps: 1e-10,
    lr_decay: 0,
    initial_accumulator_value: 0,
  });
  t.same(optimizer('SGD', { momentum: 0.9, nesterov: true }), {
    type: 'sgd',
    lr: 1e-3,
    weight_decay: 0,
    momentum: 0.9,
    dampening: 0,
    nesterov: true,
  });
});
