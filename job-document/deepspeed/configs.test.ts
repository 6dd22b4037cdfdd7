import t from 'tap';
import { defaultsOf } from '../common/defaults.js';
import { resolved } from '../testing/deepspeed.js';

/** Additional fields of every resolved document of these tests. */
const PLAIN_TRAIN = {
  ...defaultsOf('TrainSpec'),
  loss_scale: { type: 'none', max_skipped_steps: 100 },
};
const PLAIN_ZERO = { ...defaultsOf('ZeroSpec'), bucket_bytes: 16_777_216, reduce_dtype: 'bf16' };

/** From the documentation of Hugging Face Transformers for ZeRO-2. */
const HF_ZERO2 = {
  fp16: {
    enabled: 'auto',
    loss_scale: 0,
    loss_scale_window: 1000,
    initial_scale_power: 16,
    hysteresis: 2,
    min_loss_scale: 1,
  },
  bf16: { enabled: 'auto' },
  optimizer: { type: 'AdamW', params: { lr: 'auto', betas: 'auto', eps: 'auto', weight_decay: 'auto' } },
  scheduler: {
    type: 'WarmupLR',
    params: { warmup_min_lr: 'auto', warmup_max_lr: 'auto', warmup_num_steps: 'auto' },
  },
  zero_optimization: {
    stage: 2,
    allgather_partitions: true,
    allgather_bucket_size: 2e8,
    overlap_comm: true,
    reduce_scatter: true,
    reduce_bucket_size: 2e8,
    contiguous_gradients: true,
  },
  gradient_accumulation_steps: 'auto',
  gradient_clipping: 'auto',
  train_batch_size: 'auto',
  train_micro_batch_size_per_gpu: 'auto',
  steps_per_print: 2000,
  wall_clock_breakdown: false,
};

t.test('ZeRO-2 with everything "auto": the document and its defaults decide', async (t) => {
  const bare = resolved(HF_ZERO2, { train: { steps: 50 } });
  t.same(bare.train, {
    ...PLAIN_TRAIN,
    steps: 50,
    global_batch_size: 16,
    micro_batch_size: 4,
    optimizer: {
      type: 'adamw',
      lr: 1e-3,
      weight_decay: 0.1,
      betas: [0.9, 0.95],
      eps: 1e-8,
      param_groups: [],
    },
    // DeepSpeed's default warmup_type is log.
    lr_schedule: { type: 'constant', warmup_steps: 0, warmup_type: 'log', warmup_start_lr: 0, min_lr: 0 },
    gradient_clipping: 1,
    precision: 'bf16',
  });
  t.same(bare.zero, { ...PLAIN_ZERO, bucket_bytes: 400_000_000 });

  const own = resolved(HF_ZERO2, {
    train: {
      steps: 50,
      global_batch_size: 32,
      micro_batch_size: 2,
      precision: 'fp16',
      gradient_clipping: 0.5,
      optimizer: { lr: 2e-5, weight_decay: 0.01, betas: [0.9, 0.999] },
      lr_schedule: { warmup_steps: 10, warmup_type: 'linear' },
    },
  }).train;
  t.match(own, {
    global_batch_size: 32,
    micro_batch_size: 2,
    precision: 'fp16',
    gradient_clipping: 0.5,
    optimizer: { type: 'adamw', lr: 2e-5, weight_decay: 0.01, betas: [0.9, 0.999] },
    loss_scale: { type: 'dynamic', initial_scale: 65536, window: 1000, hysteresis: 2, min_scale: 1 },
  });
});

t.test('ZeRO-2 with offload and WarmupDecayLR, in fp16', async (t) => {
  const spec = resolved({
    fp16: { enabled: true, auto_cast: false, initial_scale_power: 12, loss_scale_window: 500, hysteresis: 4 },
    optimizer: {
      type: 'Adam',
      params: { lr: 3e-5, betas: [0.8, 0.999], eps: 1e-8, weight_decay: 3e-7 },
    },
    scheduler: {
      type: 'WarmupDecayLR',
      params: {
        last_batch_iteration: -1,
        total_num_steps: 5000,
        warmup_min_lr: 0,
        warmup_max_lr: 3e-5,
        warmup_num_steps: 500,
      },
    },
    zero_optimization: {
      stage: 2,
      offload_optimizer: { device: 'cpu', pin_memory: true },
      allgather_partitions: true,
      allgather_bucket_size: 5e8,
      overlap_comm: true,
      reduce_scatter: true,
      reduce_bucket_size: 5e8,
      contiguous_gradients: true,
    },
    gradient_clipping: 1.0,
    train_batch_size: 32,
    train_micro_batch_size_per_gpu: 4,
    steps_per_print: 2000,
    wall_clock_breakdown: false,
  });
  t.same(spec.train, {
    ...PLAIN_TRAIN,
    steps: 5000,
    global_batch_size: 32,
    micro_batch_size: 4,
    optimizer: {
      type: 'adamw',
      lr: 3e-5,
      weight_decay: 3e-7,
      betas: [0.8, 0.999],
      eps: 1e-8,
      param_groups: [],
    },
    lr_schedule: { type: 'linear', warmup_steps: 500, warmup_type: 'log', warmup_start_lr: 0, min_lr: 0 },
    gradient_clipping: 1,
    precision: 'fp16',
    loss_scale: {
      type: 'dynamic',
      initial_scale: 4096,
      window: 500,
      hysteresis: 4,
      consecutive_hysteresis: false,
      min_scale: 1,
      max_skipped_steps: 100,
    },
  });
  t.same(spec.zero, {
    ...PLAIN_ZERO,
    bucket_bytes: 1_000_000_000,
    reduce_dtype: 'fp16',
    grad_accum_dtype: 'fp16',
    gradient_predivide_factor: 2,
    offload: 'cpu',
  });
});

t.test('a static scale, fp16 masters and gradients, and the old names', async (t) => {
  const spec = resolved(
    {
      train_micro_batch_size_per_gpu: 2,
      fp16: { enabled: true, loss_scale: 128, fp16_master_weights_and_grads: true, fused_mode: true },
      zero_optimization: {
        stage: 2,
        cpu_offload: true,
        cpu_offload_use_pin_memory: true,
        ignore_unused_parameters: true,
      },
      prescale_gradients: true,
    },
    { train: { steps: 3 } },
  );
  t.match(spec.train, {
    global_batch_size: 4,
    micro_batch_size: 2,
    loss_scale: { type: 'static', initial_scale: 128, max_skipped_steps: null },
    lr_schedule: { type: 'constant' },
  });
  t.match(spec.zero, {
    offload: 'cpu',
    master_dtype: 'fp16',
    grad_accum_dtype: 'fp16',
    gradient_predivide_factor: 2,
  });
});

t.test(
  'the dynamic loss scale without ZeRO has no hysteresis and never fails, as in DeepSpeed',
  async (t) => {
    const scale = (stage: number | undefined, own: object = {}) =>
      resolved(
        {
          fp16: { enabled: true, hysteresis: 4 },
          ...(stage !== undefined && { zero_optimization: { stage } }),
        },
        { train: { steps: 1, ...own } },
      ).train.loss_scale;
    t.match(scale(0), { type: 'dynamic', hysteresis: 1, max_skipped_steps: null });
    t.match(scale(undefined), { type: 'dynamic', hysteresis: 1, max_skipped_steps: null });
    t.match(scale(1), { type: 'dynamic', hysteresis: 4, max_skipped_steps: 100 });
    t.match(scale(0, { loss_scale: { max_skipped_steps: 7 } }), { max_skipped_steps: 7 });
  },
);

t.test(
  'fp16 gradients are divided and summed as DeepSpeed does, since that decides what overflows',
  async (t) => {
    const zero = (config: object, own: object = {}) =>
      resolved({ fp16: { enabled: true }, ...config }, { train: { steps: 1 }, ...own }).zero;
    t.match(zero({}), { grad_accum_dtype: 'fp16', gradient_predivide_factor: 2 });
    t.match(zero({ data_types: { grad_accum_dtype: 'fp32' } }), { grad_accum_dtype: 'fp32' });
    t.match(zero({ gradient_predivide_factor: 4 }), { gradient_predivide_factor: 4 });
    t.match(zero({}, { zero: { grad_accum_dtype: 'fp32', gradient_predivide_factor: 1 } }), {
      grad_accum_dtype: 'fp32',
      gradient_predivide_factor: 1,
    });
    const bf16 = resolved({ bf16: { enabled: true } }, { train: { steps: 1 } }).zero;
    t.match(bf16, { grad_accum_dtype: 'fp32', gradient_predivide_factor: 1 });
  },
);

t.test('an empty configuration has DeepSpeed’s defaults', async (t) => {
  const { train, zero } = resolved({}, { train: { steps: 1 } });
  t.match(train, { precision: 'fp32', gradient_clipping: 0, lr_schedule: { type: 'constant' } });
  t.match(zero, { stage: 1, reduce_dtype: 'fp32', lanes: 2 });
  const own = resolved(
    {},
    { train: { steps: 1, precision: 'bf16', gradient_clipping: 2 }, zero: { stage: 2 } },
  );
  t.match(own, { train: { precision: 'bf16', gradient_clipping: 2 }, zero: { stage: 2 } });
});
