import t from 'tap';
import type { FieldErrorCode, JobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';
import { DATASET, LLAMA, SMALLEST } from '../testing/documents.js';

/** Documents that change one section of the smallest one. */
const train = (fields: JobSpec['train']) => ({ train: { steps: 1, ...fields } });
const optimizer = (fields: NonNullable<JobSpec['train']>['optimizer']) => train({ optimizer: fields });
const model = (fields: object) => ({ model: { config: { ...LLAMA, ...fields } } });

const BROKEN: [FieldErrorCode, string, string | undefined, Partial<JobSpec>][] = [
  ['micro_batch_not_divisor', '/train/micro_batch_size', '4', train({ micro_batch_size: 6 })],
  ['too_many_ranks', '/resources/ranks/max', '4', { resources: { ranks: { max: 5 } } }],
  [
    'ranks_out_of_order',
    '/resources/ranks',
    undefined,
    { resources: { ranks: { min: 2, preferred: 1, max: 4 } } },
  ],
  ['sequence_longer_than_data', '/train/sequence_length', '999', train({ sequence_length: 1000 })],
  [
    'dataset_too_small',
    '/data/validation_fraction',
    '0',
    { data: { ...SMALLEST.data, validation_fraction: 0.1 }, train: { steps: 1, sequence_length: 999 } },
  ],
  ['field_without_effect', '/train/evaluation', undefined, train({ evaluation: { every_steps: 5 } })],
  ['sequence_longer_than_model', '/train/sequence_length', '64', model({ max_position_embeddings: 64 })],
  ['vocab_too_small', '/model/config/vocab_size', '256', model({ vocab_size: 255 })],
  ['hidden_size_not_divisible', '/model/config/hidden_size', '64', model({ hidden_size: 66 })],
  ['heads_not_divisible', '/model/config/num_key_value_heads', '2', model({ num_key_value_heads: 3 })],
  ['intermediate_size_odd', '/model/config/intermediate_size', '112', model({ intermediate_size: 111 })],
  ['head_dim_odd', '/model/config/head_dim', '16', model({ head_dim: 15 })],
  [
    'warmup_longer_than_training',
    '/train/lr_schedule/warmup_steps',
    '1',
    train({ lr_schedule: { warmup_steps: 2 } }),
  ],
  ['min_lr_above_lr', '/train/lr_schedule/min_lr', undefined, train({ lr_schedule: { min_lr: 1 } })],
  [
    'warmup_start_lr_above_lr',
    '/train/lr_schedule/warmup_start_lr',
    undefined,
    train({ lr_schedule: { warmup_start_lr: 1 } }),
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
  ['field_without_effect', '/train/optimizer/momentum', undefined, optimizer({ momentum: 0.9 })],
  ['field_without_effect', '/train/optimizer/eps', undefined, optimizer({ type: 'lion', eps: 1e-8 })],
  [
    'nesterov_without_momentum',
    '/train/optimizer/nesterov',
    'false',
    optimizer({ type: 'sgd', momentum: 0, nesterov: true }),
  ],
  [
    'nesterov_without_momentum',
    '/train/optimizer/nesterov',
    'false',
    optimizer({ type: 'sgd', dampening: 0.5, nesterov: true }),
  ],
  ['out_of_range', '/train/optimizer/betas/1', '0.99999994', optimizer({ betas: [0.9, 0.99999999] })],
  ['out_of_range', '/train/optimizer/eps', '1.4e-45', optimizer({ eps: 1e-60 })],
  [
    'out_of_range',
    '/train/optimizer/momentum',
    '0.99999994',
    optimizer({ type: 'sgd', momentum: 1 - 1e-12 }),
  ],
  ['out_of_range', '/train/optimizer/momentum', '1.4e-45', optimizer({ type: 'sgd', momentum: 1e-50 })],
  [
    'min_coeff_above_max_coeff',
    '/train/optimizer/min_coeff',
    '10',
    optimizer({ type: 'lamb', min_coeff: 11 }),
  ],
  [
    'param_group_unmatched',
    '/train/optimizer/param_groups/0/match',
    undefined,
    optimizer({ param_groups: [{ match: 'transformer.h.*' }] }),
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
    optimizer({ param_groups: [{ match: '*norm*', lr: 0.1, frozen: true }] }),
  ],
  [
    'all_parameters_frozen',
    '/train/optimizer/param_groups',
    undefined,
    optimizer({ param_groups: [{ match: '*', frozen: true }] }),
  ],
  ['loss_scale_without_fp16', '/train/loss_scale/type', 'none', train({ loss_scale: { type: 'dynamic' } })],
  [
    'field_without_effect',
    '/train/loss_scale/window',
    undefined,
    train({ precision: 'fp16', loss_scale: { type: 'static', window: 5 } }),
  ],
  [
    'min_scale_above_initial_scale',
    '/train/loss_scale/min_scale',
    '8',
    train({ precision: 'fp16', loss_scale: { initial_scale: 8, min_scale: 16 } }),
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
    'param_group_unmatched',
    '/train/overrides/0/group_lr',
    undefined,
    { train: { steps: 9, overrides: [{ step: 3, group_lr: { 'lm_head.*': 1 } }] } },
  ],
  [
    'param_group_unmatched',
    '/train/overrides/0/group_lr',
    undefined,
    {
      train: {
        steps: 9,
        optimizer: { param_groups: [{ match: '*norm*', frozen: true }] },
        overrides: [{ step: 3, group_lr: { '*norm*': 1 } }],
      },
    },
  ],
  [
    'field_without_effect',
    '/train/overrides/0/loss_scale',
    undefined,
    { train: { steps: 9, overrides: [{ step: 0, loss_scale: 2 }] } },
  ],
  ['field_without_effect', '/zero/lanes', undefined, { zero: { lanes: 2 } }],
  ['lanes_out_of_range', '/zero/lanes', '4', { zero: { stage: 1, lanes: 5 } }],
  ['lane_group_out_of_range', '/zero/lane_group', '4', { zero: { lane_group: 5 } }],
  ['lane_group_out_of_range', '/zero/lane_group', '2', { zero: { stage: 1, lanes: 2, lane_group: 3 } }],
  [
    'lanes_out_of_range',
    '/zero/lanes',
    '3',
    { zero: { stage: 1, lanes: 2 }, resources: { ranks: { max: 3 } } },
  ],
  ['fp16_master_unsupported', '/zero/master_dtype', 'fp32', { zero: { master_dtype: 'fp16' } }],
  [
    'fp16_master_unsupported',
    '/zero/master_dtype',
    'fp32',
    { ...train({ precision: 'fp16' }), zero: { master_dtype: 'fp16' } },
  ],
  // 2.2 billion parameters in buckets of 2 or 33 blocks of 4096.
  [
    'too_many_buckets',
    '/zero/bucket_bytes',
    '270336',
    {
      model: { config: { ...LLAMA, hidden_size: 1024, intermediate_size: 4096, num_hidden_layers: 128 } },
      zero: { bucket_bytes: 16_384 },
    },
  ],
  ['model_has_no_experts', '/zero/expert_parallel_size', '1', { zero: { expert_parallel_size: 2 } }],
  // Four experts; four leaves, or as many as the batch has.
  ['expert_parallel_not_divisor', '/zero/expert_parallel_size', '2', spread(3)],
  ['expert_parallel_not_divisor', '/zero/expert_parallel_size', '2', spread(4, { leaves: 6 })],
  ['expert_parallel_not_divisor', '/zero/expert_parallel_size', '1', spread(2, { leaves: 5 })],
  ['expert_parallel_not_divisor', '/resources/ranks/max', '2', spread(2, { ranks: { max: 3 } })],
  ['expert_parallel_not_divisor', '/resources/ranks/min', '2', spread(2, { ranks: { min: 3 } })],
  ['expert_parallel_not_divisor', '/resources/ranks/min', '2', spread(2, { ranks: { min: 1 } })],
  ['expert_parallel_not_divisor', '/zero/lanes', '2', spread(2, { zero: { stage: 1, lanes: 3 } })],
];

/** Returns a document with the given number of expert sets. */
function spread(
  expertParallelSize: number,
  {
    leaves = 4,
    ranks = {},
    zero = {},
  }: { leaves?: number; ranks?: NonNullable<JobSpec['resources']>['ranks']; zero?: JobSpec['zero'] } = {},
): Partial<JobSpec> {
  return {
    model: { preset: 'mixtral-tiny' },
    train: { steps: 1, global_batch_size: leaves, micro_batch_size: 1 },
    zero: { ...zero, expert_parallel_size: expertParallelSize },
    resources: { ranks },
  };
}

t.test('each rule between fields', async (t) => {
  for (const [code, pointer, suggestion, change] of BROKEN) {
    const { errors } = resolveSpec({ ...SMALLEST, ...change }, DATASET);
    t.equal(errors.length, 1, code);
    t.match(errors[0], { code, pointer, ...(suggestion && { suggestion }) });
  }
});

t.test('the suggestion is accepted', async (t) => {
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

t.test('fp16 in the exchange alone allows a loss scale', async (t) => {
  const train = { steps: 1, loss_scale: { type: 'dynamic' as const } };
  for (const zero of [{ reduce_dtype: 'fp16' as const }, { grad_accum_dtype: 'fp16' as const }])
    t.same(resolveSpec({ ...SMALLEST, train, zero }, DATASET).errors, []);
});
