import t from 'tap';
import {
  type Dataset,
  FIELD_ERROR_CATALOGUE,
  type FieldErrorCode,
  type JobSpec,
  leafCount,
  presets,
  resolveSpec,
} from './index.js';

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
    model: { config: presets['llama-tiny'], preset: 'llama-tiny' },
    data: { dataset: DATASET.id, tokenizer: 'bytes', seed: 1 },
    train: {
      steps: 10,
      sequence_length: 128,
      global_batch_size: 16,
      micro_batch_size: 4,
      seed: 1,
      optimizer: { type: 'adamw', lr: 1e-3, betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.1 },
      lr_schedule: { type: 'cosine', warmup_steps: 0, min_lr: 0 },
      gradient_clipping: 1,
      precision: 'bf16',
    },
    zero: { stage: 2, bucket_bytes: 4_194_304, reduce_dtype: 'bf16' },
    resources: { pool: 'default', ranks: { min: 1, max: 1, preferred: 1 } },
    checkpoint: { every_steps: 100, keep_last: 3 },
    retry: { max_errors: 3 },
    export: { format: 'safetensors', dtype: 'bf16' },
  });
});

t.test('a resolved document resolves to itself', async (t) => {
  const { spec } = resolveSpec({ ...SMALLEST, train: { steps: 3, precision: 'fp32' } }, DATASET);
  const again = resolveSpec({ ...spec, name: 'x', model: { config: spec.model.config } } as JobSpec, DATASET);
  t.same(again.errors, []);
  t.same({ ...again.spec, name: '', model: spec.model }, spec);
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
