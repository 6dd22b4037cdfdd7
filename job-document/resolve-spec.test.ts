import t from 'tap';
import type { JobSpec } from '../contracts/index.js';
import { leafCount } from './model/leaves.js';
import { presets } from './presets.js';
import { OPTIMIZER_TYPES, type OptimizerType } from './resolve/optimizer.js';
import { resolveSpec } from './resolve-spec.js';
import { DATASET, LLAMA, SMALLEST } from './testing/documents.js';

t.test('every default is filled in', async (t) => {
  const { spec, errors } = resolveSpec(SMALLEST, DATASET);
  t.same(errors, []);
  t.same(spec, {
    name: '',
    project: 'default',
    labels: {},
    notes: '',
    priority: 0,
    model: { config: presets['llama-tiny'], preset: 'llama-tiny', init_from: null },
    data: {
      dataset: DATASET.id,
      tokenizer: 'bytes',
      chat_template: null,
      template_date: null,
      packing: 'split',
      parse_special_tokens: false,
      validation_fraction: 0,
      seed: 1,
    },
    train: {
      steps: 10,
      sequence_length: 128,
      global_batch_size: 16,
      micro_batch_size: 4,
      seed: 1,
      optimizer: {
        type: 'adamw',
        lr: 1e-3,
        weight_decay: 0.1,
        betas: [0.9, 0.95],
        eps: 1e-8,
        param_groups: [],
      },
      lr_schedule: {
        type: 'cosine',
        warmup_steps: 0,
        warmup_type: 'linear',
        warmup_start_lr: 0,
        min_lr: 0,
      },
      gradient_clipping: 1,
      gradient_clipping_norm: 'l2',
      precision: 'bf16',
      loss_scale: { type: 'none', max_skipped_steps: 100 },
      max_skipped_share: 0.5,
      overrides: [],
      activation_checkpointing: false,
    },
    zero: {
      stage: 2,
      bucket_bytes: 16_777_216,
      reduce_dtype: 'bf16',
      lane_group: 1,
      grad_accum_dtype: 'fp32',
      master_dtype: 'fp32',
      gradient_predivide_factor: 1,
      offload: 'none',
      expert_parallel_size: 1,
    },
    resources: { pool: 'default', ranks: { min: 1, max: 1, preferred: 1 } },
    checkpoint: { every_steps: 100, on_busy: 'skip', keep: { last: 3, best: 0 } },
    limits: { on_limit: 'pause' },
    retry: { max_errors: 3, preemptions: null },
    notify: { webhooks: [] },
    integrations: [],
    export: {
      format: 'safetensors',
      dtype: 'bf16',
      weights: 'trained',
      checkpoint: 'last',
      tensorboard: false,
    },
  });
});

/** Documents of each optimizer and of each part of the schema with its own defaults. */
const DOCUMENTS: JobSpec['train'][] = [
  { steps: 3, precision: 'fp32' },
  ...OPTIMIZER_TYPES.map((type) => ({
    steps: 30,
    precision: 'fp16' as const,
    optimizer: { type, param_groups: [{ match: '*norm*', lr: 0.01 }] },
    lr_schedule: { type: 'wsd' as const, warmup_type: 'log' as const },
    overrides: [
      { step: 3, lr: 0.1 },
      { step: 4, lr: null, loss_scale: 8 },
    ],
  })),
  { steps: 3, precision: 'fp16', loss_scale: { type: 'static' } },
];

t.test('a resolved document resolves to itself', async (t) => {
  for (const train of DOCUMENTS) {
    for (const stage of [1, 2] as const) {
      const { spec, errors } = resolveSpec({ ...SMALLEST, train, zero: { stage } }, DATASET);
      t.same(errors, []);
      const again = resolveSpec({ ...spec, name: 'x', model: { config: spec.model.config } }, DATASET);
      t.same(again.errors, []);
      t.same({ ...again.spec, name: '', model: spec.model }, spec);
    }
  }
});

t.test('the defaults of each optimizer, and no fields of the others', async (t) => {
  const optimizer = (type: OptimizerType) => {
    const { lr, param_groups, ...rest } = resolveSpec(
      { ...SMALLEST, train: { steps: 1, optimizer: { type } } },
      null,
    ).spec.train.optimizer;
    t.equal(lr, 1e-3);
    t.same(param_groups, []);
    return rest;
  };
  t.same(optimizer('adamw'), { type: 'adamw', weight_decay: 0.1, betas: [0.9, 0.95], eps: 1e-8 });
  t.same(optimizer('adam'), { type: 'adam', weight_decay: 0, betas: [0.9, 0.95], eps: 1e-8 });
  t.same(optimizer('lamb'), {
    type: 'lamb',
    weight_decay: 0.1,
    betas: [0.9, 0.95],
    eps: 1e-6,
    min_coeff: 0.01,
    max_coeff: 10,
    bias_correction: 'update',
  });
  t.same(optimizer('lion'), { type: 'lion', weight_decay: 0.1, betas: [0.9, 0.99] });
  t.same(optimizer('adagrad'), {
    type: 'adagrad',
    weight_decay: 0,
    eps: 1e-10,
    lr_decay: 0,
    initial_accumulator_value: 0,
  });
  t.same(optimizer('sgd'), { type: 'sgd', weight_decay: 0, momentum: 0.9, dampening: 0, nesterov: false });
});

t.test('the defaults of the loss scale, of wsd and of stage 1', async (t) => {
  const train = (given: object) =>
    resolveSpec({ ...SMALLEST, train: { steps: 95, ...given } }, DATASET).spec.train;
  t.same(train({ precision: 'fp16' }).loss_scale, {
    type: 'dynamic',
    initial_scale: 65536,
    window: 1000,
    hysteresis: 2,
    consecutive_hysteresis: false,
    min_scale: 1,
    max_skipped_steps: 100,
  });
  t.same(train({ precision: 'fp16', loss_scale: { type: 'static' } }).loss_scale, {
    type: 'static',
    initial_scale: 65536,
    max_skipped_steps: 100,
  });
  t.same(train({ precision: 'fp16', loss_scale: { type: 'none' } }).loss_scale, {
    type: 'none',
    max_skipped_steps: 100,
  });
  t.equal(train({ lr_schedule: { type: 'wsd' } }).lr_schedule.decay_steps, 10);
  t.notOk('decay_steps' in train({}).lr_schedule);
  const { zero } = resolveSpec(
    { ...SMALLEST, zero: { stage: 1 }, resources: { ranks: { max: 3 } } },
    DATASET,
  ).spec;
  t.equal(zero.lanes, 3);
});

t.test('defaults that depend on another field', async (t) => {
  const zero = resolveSpec({ ...SMALLEST, train: { steps: 1, precision: 'fp32' } }, DATASET).spec.zero;
  t.equal(zero.reduce_dtype, 'fp32');
  const ranks = (given: object) =>
    resolveSpec({ ...SMALLEST, resources: { ranks: given } }, DATASET).spec.resources.ranks;
  t.same(ranks({ preferred: 3 }), { min: 1, max: 3, preferred: 3 });
  t.same(ranks({ min: 2 }), { min: 2, max: 2, preferred: 2 });
  t.same(ranks({ max: 4 }), { min: 1, max: 4, preferred: 1 });
  const { config, preset } = resolveSpec({ ...SMALLEST, model: { config: LLAMA } }, DATASET).spec.model;
  t.equal(preset, null);
  t.match(config, { num_key_value_heads: 4, head_dim: 16, rms_norm_eps: 1e-6, initializer_range: 0.02 });
});

t.test('leaves', async (t) => {
  t.equal(leafCount({ global_batch_size: 16, micro_batch_size: 4 }), 4);
});

t.test('validation data is evaluated every 100 steps by default', async (t) => {
  const data = { ...SMALLEST.data, validation_fraction: 0.1 };
  const evaluation = (everySteps?: number) => {
    const train = { steps: 10, ...(everySteps && { evaluation: { every_steps: everySteps } }) };
    return resolveSpec({ ...SMALLEST, data, train }, null).spec.train.evaluation;
  };
  t.same(evaluation(), { every_steps: 100, datasets: [] });
  t.same(evaluation(7), { every_steps: 7, datasets: [] });
  t.notOk('evaluation' in resolveSpec(SMALLEST, null).spec.train, 'absent without validation data');
});
