/** Tests that every setting of the job document reaches the core. */
import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../../job-document/index.js';
import { startMessage } from '../testing/start-message.js';
import { trainerConfig } from './trainer-config.js';

type Sections = Pick<JobSpec, 'train' | 'zero' | 'resources'>;

function configOf({ train, zero, resources }: Sections) {
  const { spec, errors } = resolveSpec(
    {
      model: { preset: 'llama-tiny' },
      data: { dataset: 'ds_01J00000000000000000000000' },
      train: { steps: 100, ...train },
      ...(zero && { zero }),
      ...(resources && { resources }),
    },
    null,
  );
  t.strictSame(errors, []);
  return trainerConfig(startMessage({ spec, world_size: 2 }));
}

t.test('each objective with its own fields', async (t) => {
  const objectives: [NonNullable<NonNullable<JobSpec['train']>['objective']>, object | null][] = [
    [{ type: 'sft' }, null],
    [
      { type: 'dpo', label_smoothing: 0.25 },
      { type: 'dpo', beta: 0.1, label_smoothing: 0.25, reference: 'initial' },
    ],
    [
      { type: 'ipo', beta: 0.5 },
      { type: 'ipo', beta: 0.5, reference: 'initial' },
    ],
    [{ type: 'orpo' }, { type: 'orpo', beta: 0.1 }],
    [
      { type: 'simpo', gamma: 0.5 },
      { type: 'simpo', beta: 2, gamma: 0.5 },
    ],
    [
      { type: 'kto', desirable_weight: 2 },
      { type: 'kto', beta: 0.1, desirable_weight: 2, undesirable_weight: 1, reference: 'initial' },
    ],
  ];
  for (const [objective, wanted] of objectives) t.same(configOf({ train: { objective } }).preference, wanted);
  const { preference } = configOf({ train: { objective: { type: 'dpo' }, adapter: {} } });
  t.equal(preference?.reference, 'base');
});

t.test('each optimizer with its own fields', async (t) => {
  const optimizers: [NonNullable<NonNullable<JobSpec['train']>['optimizer']>, object][] = [
    [
      { type: 'adamw', lr: 0.5, weight_decay: 0.25, betas: [0.5, 0.75], eps: 0.125 },
      { lr: 0.5, weight_decay: 0.25, beta1: 0.5, beta2: 0.75, eps: 0.125 },
    ],
    [
      { type: 'adam', betas: [0.5, 0.75], eps: 0.125 },
      { beta1: 0.5, beta2: 0.75, eps: 0.125, weight_decay: 0 },
    ],
    [
      {
        type: 'lamb',
        betas: [0.5, 0.75],
        eps: 0.125,
        min_coeff: 0.25,
        max_coeff: 4,
        bias_correction: 'step_size',
      },
      { beta1: 0.5, beta2: 0.75, eps: 0.125, min_coeff: 0.25, max_coeff: 4, bias_correction: 'step_size' },
    ],
    [
      { type: 'lion', betas: [0.5, 0.75] },
      { beta1: 0.5, beta2: 0.75 },
    ],
    [
      { type: 'adagrad', eps: 0.125, lr_decay: 0.5, initial_accumulator_value: 3 },
      { eps: 0.125, lr_decay: 0.5, initial_accumulator_value: 3 },
    ],
    [
      { type: 'sgd', momentum: 0.5, dampening: 0.25 },
      { momentum: 0.5, dampening: 0.25, nesterov: false },
    ],
    [
      { type: 'sgd', momentum: 0.5, nesterov: true },
      { momentum: 0.5, dampening: 0, nesterov: true },
    ],
  ];
  for (const [given, expected] of optimizers) {
    t.match(configOf({ train: { optimizer: given } }).optimizer, { type: given.type, ...expected });
  }
});

t.test('the core gets the average of the document', async (t) => {
  t.equal(configOf({}).ema, undefined);
  t.same(configOf({ train: { ema: { decay: 0.75 } } }).ema, { decay: 0.75 });
});

t.test("a group's own rate is a factor of the peak", async (t) => {
  const { param_groups } = configOf({
    train: {
      optimizer: {
        lr: 0.5,
        param_groups: [
          { match: '*.q_proj.weight', lr: 0.125 },
          { match: '*norm*', weight_decay: 0.25 },
          { match: 'model.embed_tokens.weight', frozen: true },
        ],
      },
    },
  });
  t.strictSame(param_groups, [
    { match: '*.q_proj.weight', lr_scale: 0.25, weight_decay: null, frozen: false },
    { match: '*norm*', lr_scale: 1, weight_decay: 0.25, frozen: false },
    { match: 'model.embed_tokens.weight', lr_scale: 1, weight_decay: null, frozen: true },
  ]);
});

t.test('schedule, clipping, loss scale and overrides', async (t) => {
  const lrSchedule = {
    type: 'wsd' as const,
    warmup_steps: 5,
    warmup_type: 'log' as const,
    warmup_start_lr: 1e-5,
    min_lr: 1e-4,
    decay_steps: 7,
  };
  const lossScale = {
    type: 'dynamic' as const,
    initial_scale: 128,
    window: 9,
    hysteresis: 3,
    consecutive_hysteresis: true,
    min_scale: 2,
    max_skipped_steps: 11,
  };
  const overrides = [
    { step: 3, lr: 0.25 },
    { step: 5, lr: null, loss_scale: 4 },
  ];
  const train = {
    precision: 'fp16' as const,
    gradient_clipping: 0.5,
    gradient_clipping_norm: 'max' as const,
  };
  const config = configOf({ train: { ...train, lr_schedule: lrSchedule, loss_scale: lossScale, overrides } });
  t.match(config, { ...train, lr_schedule: lrSchedule, loss_scale: lossScale, overrides });
  t.strictSame(config.overrides, overrides);
  const plain = configOf({});
  t.match(plain.loss_scale, { type: 'none', max_skipped_steps: 100 });
  t.match(plain.lr_schedule, { type: 'cosine', warmup_type: 'linear' });
});

t.test('all settings of zero', async (t) => {
  const zero = {
    stage: 1 as const,
    lanes: 3,
    bucket_bytes: 65_536,
    reduce_dtype: 'fp32' as const,
    lane_group: 2,
    grad_accum_dtype: 'bf16' as const,
    master_dtype: 'fp16' as const,
    gradient_predivide_factor: 2,
    offload: 'cpu' as const,
    expert_parallel_size: 1,
  };
  const resources = { ranks: { min: 1, preferred: 2, max: 3 } };
  t.strictSame(configOf({ train: { precision: 'fp16' }, zero, resources }).zero, zero);
  t.match(configOf({ resources }).zero, { stage: 2, offload: 'none' });
});
