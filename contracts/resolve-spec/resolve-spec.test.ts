import t from 'tap';
import {
  completeSpec,
  type Dataset,
  FIELD_ERROR_CATALOGUE,
  type FieldErrorCode,
  type JobSpec,
  leafCount,
  presets,
  type ResolvedJobSpec,
  resolveSpec,
} from '../index.js';
import { globMatches, groupOf } from './param-groups.js';

const DATASET: Dataset = {
  id: 'ds_00000000000000000000000000',
  name: 'text',
  format: 'text',
  bytes: 1000,
  digest: `sha256:${'0'.repeat(64)}`,
  num_tokens: 1000,
  created_at: '2026-01-01T00:00:00.000Z',
};
const SMALLEST: JobSpec = {
  model: { preset: 'llama-tiny' },
  data: { dataset: DATASET.id },
  train: { steps: 10 },
};
const LLAMA = {
  model_type: 'llama',
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  vocab_size: 256,
} as const;

t.test('every default is filled in', async (t) => {
  const { spec, errors } = resolveSpec(SMALLEST, DATASET);
  t.same(errors, []);
  t.same(spec, {
    name: '',
    labels: {},
    model: { config: presets['llama-tiny'], preset: 'llama-tiny', init_from: null },
    data: { dataset: DATASET.id, tokenizer: 'bytes', seed: 1 },
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
      overrides: [],
    },
    zero: {
      stage: 2,
      bucket_bytes: 4_194_304,
      reduce_dtype: 'bf16',
      grad_accum_dtype: 'fp32',
      master_dtype: 'fp32',
      gradient_predivide_factor: 1,
      unused_parameters: 'error',
      offload: 'none',
      numerics: 'exact',
      expert_parallel_size: 1,
    },
    resources: { pool: 'default', ranks: { min: 1, max: 1, preferred: 1 } },
    checkpoint: { every_steps: 100, keep_last: 3 },
    retry: { max_errors: 3 },
    export: { format: 'safetensors', dtype: 'bf16' },
  });
});

/** A document of each optimizer and of each part of the schema that has its own defaults. */
const DOCUMENTS: JobSpec['train'][] = [
  { steps: 3, precision: 'fp32' },
  ...(['adamw', 'adam', 'lamb', 'lion', 'adagrad', 'sgd'] as const).map((type) => ({
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
      t.same(completeSpec(spec), spec);
    }
  }
});

t.test('a document that was resolved before there were the newest fields keeps its meaning', async (t) => {
  const { spec } = resolveSpec({ ...SMALLEST, zero: { reduce_dtype: 'fp32' } }, DATASET);
  const { type, lr, betas, eps, weight_decay } = spec.train.optimizer;
  const { gradient_clipping_norm: _, loss_scale: __, overrides: ___, ...train } = spec.train;
  const old = {
    ...spec,
    model: { config: spec.model.config, preset: spec.model.preset },
    train: {
      ...train,
      optimizer: { type, lr, betas, eps, weight_decay },
      lr_schedule: { type: 'cosine', warmup_steps: 0, min_lr: 0 },
    },
    zero: { stage: 2, bucket_bytes: 4_194_304, reduce_dtype: 'fp32' },
  };
  t.same(completeSpec(old as unknown as ResolvedJobSpec), spec);
});

t.test('the defaults of each optimizer, and no fields of the others', async (t) => {
  const optimizer = (type: 'adamw' | 'adam' | 'lamb' | 'lion' | 'adagrad' | 'sgd') => {
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

t.test('defaults that follow another field', async (t) => {
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

const BROKEN: [FieldErrorCode, string, string | undefined, Partial<JobSpec>][] = [
  ['micro_batch_not_divisor', '/train/micro_batch_size', '4', { train: { steps: 1, micro_batch_size: 6 } }],
  ['too_many_ranks', '/resources/ranks/max', '4', { resources: { ranks: { max: 5 } } }],
  [
    'ranks_out_of_order',
    '/resources/ranks',
    undefined,
    { resources: { ranks: { min: 2, preferred: 1, max: 4 } } },
  ],
  [
    'sequence_longer_than_data',
    '/train/sequence_length',
    '999',
    { train: { steps: 1, sequence_length: 1000 } },
  ],
  [
    'sequence_longer_than_model',
    '/train/sequence_length',
    '64',
    { model: { config: { ...LLAMA, max_position_embeddings: 64 } } },
  ],
  [
    'vocab_too_small',
    '/model/config/vocab_size',
    '256',
    { model: { config: { ...LLAMA, vocab_size: 255 } } },
  ],
  [
    'hidden_size_not_divisible',
    '/model/config/hidden_size',
    '64',
    { model: { config: { ...LLAMA, hidden_size: 66 } } },
  ],
  [
    'heads_not_divisible',
    '/model/config/num_key_value_heads',
    '2',
    { model: { config: { ...LLAMA, num_key_value_heads: 3 } } },
  ],
  [
    'intermediate_size_odd',
    '/model/config/intermediate_size',
    '112',
    { model: { config: { ...LLAMA, intermediate_size: 111 } } },
  ],
  ['head_dim_odd', '/model/config/head_dim', '16', { model: { config: { ...LLAMA, head_dim: 15 } } }],
  [
    'warmup_longer_than_training',
    '/train/lr_schedule/warmup_steps',
    '1',
    { train: { steps: 1, lr_schedule: { warmup_steps: 2 } } },
  ],
  [
    'min_lr_above_lr',
    '/train/lr_schedule/min_lr',
    undefined,
    { train: { steps: 1, lr_schedule: { min_lr: 1 } } },
  ],
  [
    'warmup_start_lr_above_lr',
    '/train/lr_schedule/warmup_start_lr',
    undefined,
    { train: { steps: 1, lr_schedule: { warmup_start_lr: 1 } } },
  ],
  [
    'decay_longer_than_training',
    '/train/lr_schedule/decay_steps',
    '6',
    { train: { steps: 10, lr_schedule: { type: 'wsd', warmup_steps: 4, decay_steps: 7 } } },
  ],
  [
    'field_without_effect',
    '/train/lr_schedule/decay_steps',
    undefined,
    { train: { steps: 10, lr_schedule: { decay_steps: 7 } } },
  ],
  [
    'field_without_effect',
    '/train/optimizer/momentum',
    undefined,
    { train: { steps: 1, optimizer: { momentum: 0.9 } } },
  ],
  [
    'field_without_effect',
    '/train/optimizer/eps',
    undefined,
    { train: { steps: 1, optimizer: { type: 'lion', eps: 1e-8 } } },
  ],
  [
    'nesterov_without_momentum',
    '/train/optimizer/nesterov',
    'false',
    { train: { steps: 1, optimizer: { type: 'sgd', momentum: 0, nesterov: true } } },
  ],
  [
    'nesterov_without_momentum',
    '/train/optimizer/nesterov',
    'false',
    { train: { steps: 1, optimizer: { type: 'sgd', dampening: 0.5, nesterov: true } } },
  ],
  [
    'min_coeff_above_max_coeff',
    '/train/optimizer/min_coeff',
    '10',
    { train: { steps: 1, optimizer: { type: 'lamb', min_coeff: 11 } } },
  ],
  [
    'param_group_unmatched',
    '/train/optimizer/param_groups/0/match',
    undefined,
    { train: { steps: 1, optimizer: { param_groups: [{ match: 'transformer.h.*' }] } } },
  ],
  [
    'param_group_unmatched',
    '/train/optimizer/param_groups/1/match',
    undefined,
    {
      train: {
        steps: 1,
        optimizer: {
          param_groups: [
            { match: '*.weight', lr: 0.1 },
            { match: '*norm*', lr: 0.2 },
          ],
        },
      },
    },
  ],
  [
    'field_without_effect',
    '/train/optimizer/param_groups/0/lr',
    undefined,
    { train: { steps: 1, optimizer: { param_groups: [{ match: '*norm*', lr: 0.1, frozen: true }] } } },
  ],
  [
    'all_parameters_frozen',
    '/train/optimizer/param_groups',
    undefined,
    { train: { steps: 1, optimizer: { param_groups: [{ match: '*', frozen: true }] } } },
  ],
  [
    'loss_scale_without_fp16',
    '/train/loss_scale/type',
    'none',
    { train: { steps: 1, loss_scale: { type: 'dynamic' } } },
  ],
  [
    'field_without_effect',
    '/train/loss_scale/window',
    undefined,
    { train: { steps: 1, precision: 'fp16', loss_scale: { type: 'static', window: 5 } } },
  ],
  [
    'min_scale_above_initial_scale',
    '/train/loss_scale/min_scale',
    '8',
    { train: { steps: 1, precision: 'fp16', loss_scale: { initial_scale: 8, min_scale: 16 } } },
  ],
  [
    'overrides_not_ascending',
    '/train/overrides/1/step',
    undefined,
    {
      train: {
        steps: 9,
        overrides: [
          { step: 3, lr: 1 },
          { step: 3, lr: 2 },
        ],
      },
    },
  ],
  [
    'override_after_training',
    '/train/overrides/0/step',
    '8',
    { train: { steps: 9, overrides: [{ step: 9, lr: 1 }] } },
  ],
  [
    'field_without_effect',
    '/train/overrides/0/loss_scale',
    undefined,
    { train: { steps: 9, overrides: [{ step: 0, loss_scale: 2 }] } },
  ],
  ['field_without_effect', '/zero/lanes', undefined, { zero: { lanes: 2 } }],
  ['lanes_out_of_range', '/zero/lanes', '4', { zero: { stage: 1, lanes: 5 } }],
  [
    'lanes_out_of_range',
    '/zero/lanes',
    '3',
    { zero: { stage: 1, lanes: 2 }, resources: { ranks: { max: 3 } } },
  ],
  ['fp16_master_not_possible', '/zero/master_dtype', 'fp32', { zero: { master_dtype: 'fp16' } }],
  [
    'fp16_master_not_possible',
    '/zero/master_dtype',
    'fp32',
    { train: { steps: 1, precision: 'fp16' }, zero: { master_dtype: 'fp16' } },
  ],
  ['model_has_no_experts', '/zero/expert_parallel_size', '1', { zero: { expert_parallel_size: 2 } }],
];

t.test('each rule between fields', async (t) => {
  for (const [code, pointer, suggestion, change] of BROKEN) {
    const { errors } = resolveSpec({ ...SMALLEST, ...change }, DATASET);
    t.equal(errors.length, 1, code);
    t.match(errors[0], { code, pointer, ...(suggestion && { suggestion }) });
    t.ok(Object.hasOwn(FIELD_ERROR_CATALOGUE, code));
  }
});

t.test('what the suggestion says is accepted', async (t) => {
  const withSuggestion = resolveSpec({ ...SMALLEST, train: { steps: 1, sequence_length: 999 } }, DATASET);
  t.same(withSuggestion.errors, []);
});

t.test('all broken rules at once', async (t) => {
  const { errors } = resolveSpec(
    {
      ...SMALLEST,
      model: { config: { ...LLAMA, vocab_size: 10, num_key_value_heads: 3 } },
      train: { steps: 1, sequence_length: 4000, lr_schedule: { warmup_steps: 5 } },
      resources: { ranks: { max: 100 } },
    },
    DATASET,
  );
  t.same(errors.map((error) => error.code).sort(), [
    'heads_not_divisible',
    'sequence_longer_than_data',
    'sequence_longer_than_model',
    'too_many_ranks',
    'vocab_too_small',
    'warmup_longer_than_training',
  ]);
});

t.test('without a dataset the rules about data are skipped', async (t) => {
  t.same(resolveSpec({ ...SMALLEST, train: { steps: 1, sequence_length: 2000 } }, null).errors, []);
});

t.test('leaves', async (t) => {
  t.equal(leafCount({ global_batch_size: 16, micro_batch_size: 4 }), 4);
});

t.test('fp16 on the wire alone gives a loss scale its meaning', async (t) => {
  const train = { steps: 1, loss_scale: { type: 'dynamic' as const } };
  for (const zero of [{ reduce_dtype: 'fp16' as const }, { grad_accum_dtype: 'fp16' as const }])
    t.same(resolveSpec({ ...SMALLEST, train, zero }, DATASET).errors, []);
});

t.test('patterns of parameter names', async (t) => {
  const name = 'model.layers.10.mlp.up_proj.weight';
  for (const pattern of [
    name,
    '*',
    '*weight',
    'model.*',
    '*.10.*',
    'model.layers.1?.*',
    '*.mlp.*.weight',
    '**',
  ])
    t.ok(globMatches(pattern, name), pattern);
  for (const pattern of ['', 'model', 'model.layers.?.*', '*bias', 'Model.*', 'weight', '?', `${name}?`])
    t.notOk(globMatches(pattern, name), pattern);
  t.ok(globMatches('*', ''));
  t.notOk(globMatches('?', ''));
  t.notOk(globMatches(`${'a*'.repeat(100)}b`, 'a'.repeat(256)), 'in a reasonable time');
});

t.test('the first matching entry counts', async (t) => {
  const groups = [
    { match: 'model.layers.0.*', lr: 0.1, weight_decay: null, frozen: false },
    { match: '*norm*', lr: null, weight_decay: 0.5, frozen: false },
  ];
  t.equal(groupOf(groups, 'model.layers.0.input_layernorm.weight')?.lr, 0.1);
  t.equal(groupOf(groups, 'model.layers.1.input_layernorm.weight')?.weight_decay, 0.5);
  t.equal(groupOf(groups, 'lm_head.weight'), undefined);
});

t.test('a checkpoint to begin with', async (t) => {
  const source = (train: JobSpec['train'] = { steps: 1 }, model: JobSpec['model'] = SMALLEST.model) => ({
    checkpoint: {
      id: `ckpt_${'0'.repeat(26)}`,
      job_id: `job_${'0'.repeat(26)}`,
      step: 7,
      world_size: 2,
      state_digest: '0'.repeat(32),
      bytes: 1,
      committed_at: '2026-01-01T00:00:00.000Z',
      pinned: false,
      prefix: 'jobs/job_0/checkpoints/000000007-1-a',
    },
    spec: resolveSpec({ ...SMALLEST, train, model }, null).spec,
  });
  const begin = (init_from: { checkpoint: string; restore?: 'full' }, from: ReturnType<typeof source>) =>
    resolveSpec({ ...SMALLEST, model: { preset: 'llama-tiny', init_from } }, DATASET, { source: from });
  const { checkpoint } = source();
  const good = begin({ checkpoint: checkpoint.id }, source({ steps: 1, optimizer: { type: 'lion' } }));
  t.same(good.errors, []);
  t.same(good.spec.model.init_from, {
    checkpoint: checkpoint.id,
    job: checkpoint.job_id,
    prefix: checkpoint.prefix,
    restore: 'weights',
  });
  t.match(
    begin({ checkpoint: checkpoint.id, restore: 'full' }, source({ steps: 1, optimizer: { type: 'lion' } }))
      .errors,
    [{ pointer: '/model/init_from/restore', code: 'checkpoint_optimizer_differs', suggestion: 'weights' }],
  );
  t.same(begin({ checkpoint: checkpoint.id, restore: 'full' }, source()).errors, []);
  t.match(begin({ checkpoint: checkpoint.id }, source(undefined, { config: LLAMA })).errors, [
    {
      pointer: '/model/init_from/checkpoint',
      code: 'checkpoint_model_differs',
      message: /hidden_size 64 \(here 256\)/,
    },
  ]);
});
