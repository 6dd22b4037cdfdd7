import t from 'tap';
import type { JobSpec, Model } from '../../../contracts/index.js';
import { resolveSpec } from '../../resolve-spec.js';

const config = {
  model_type: 'llama',
  architectures: ['LlamaForCausalLM'],
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  vocab_size: 256,
  rope_parameters: { rope_type: 'default', rope_theta: 50_000 },
};
const id = 'mdl_01J00000000000000000000000';
const source = { model: { id, config } as unknown as Model };

const resolve = (model: JobSpec['model'], from: typeof source | null = source) => {
  const document = { model, data: { dataset: 'ds_01J00000000000000000000000' }, train: { steps: 1 } };
  const { spec, errors } = resolveSpec(document, null, { source: from });
  return {
    model: spec.model,
    errors: errors.map(({ pointer, code, message }) => ({ pointer, code, message })),
  };
};

t.test('the configuration is the model’s, with every field', async (t) => {
  const { model, errors } = resolve({ init_from: { model: id } });
  t.strictSame(errors, []);
  t.strictSame(model.init_from, { model: id });
  t.equal(model.preset, null);
  t.match(model.config, { model_type: 'llama', hidden_size: 64, rope_theta: 50_000, head_dim: 16 });
});

t.test('another configuration with the same parameters takes precedence', async (t) => {
  const { model, errors } = resolve({
    config: { ...config, rms_norm_eps: 0.001 } as never,
    init_from: { model: id },
  });
  t.strictSame(errors, []);
  t.match(model.config, { rms_norm_eps: 0.001 });
});

t.test('a mismatch is refused by name', async (t) => {
  const initFrom = { model: id };
  const cases: [JobSpec['model'], string, RegExp][] = [
    [
      { config: { ...config, intermediate_size: 130 } as never, init_from: initFrom },
      '/model/init_from/model init_model_mismatch',
      /gate_proj.weight has shape \[128,64\] in the model and \[130,64\] in the job/,
    ],
    [
      { config: { ...config, tie_word_embeddings: true } as never, init_from: initFrom },
      '/model/init_from/model init_model_mismatch',
      /the job's model has no lm_head.weight/,
    ],
    [
      { preset: 'llama-small', init_from: initFrom },
      '/model/init_from/model init_model_mismatch',
      /embed_tokens/,
    ],
    [
      { init_from: { model: id, restore: 'full' } },
      '/model/init_from/restore field_without_effect',
      /weights/,
    ],
    [{ preset: 'llama-tiny', config: config as never }, '/model exactly_one_of', /not both/],
    [{}, '/model exactly_one_of', /init_from.model/],
  ];
  for (const [model, expected, message] of cases) {
    const { errors } = resolve(model, model.init_from ? source : null);
    t.strictSame(
      errors.map(({ pointer, code }) => `${pointer} ${code}`),
      [expected],
    );
    t.match(errors[0]?.message, message);
  }
});

t.test('an adapter is trained on over its base, unless the document says otherwise', async (t) => {
  const adapter = {
    type: 'lora',
    rank: 4,
    alpha: 5,
    rank_stabilized: false,
    dropout: 0.1,
    target_modules: ['q_proj'],
    modules_to_save: [],
    init: 'kaiming_uniform',
  } as const;
  const base = 'mdl_01J00000000000000000000001';
  const from = { model: { id, config, base, adapter } as unknown as Model };
  const begin = (given?: NonNullable<JobSpec['train']>['adapter']) =>
    resolveSpec(
      {
        model: { init_from: { model: id } },
        data: { dataset: 'ds_01J00000000000000000000000' },
        train: { steps: 1, ...(given && { adapter: given }) },
      },
      null,
      { source: from },
    );
  t.same(begin().errors, []);
  t.same(begin().spec.train.adapter, adapter);
  t.same(begin().spec.model.base, { model: base });
  const changed = begin({ rank: 4, target_modules: ['q_proj'], alpha: 7 });
  t.same(changed.errors, []);
  t.match(changed.spec.train.adapter, { alpha: 7, dropout: 0 });
  t.match(begin({ rank: 3, target_modules: ['q_proj'] }).errors, [
    { pointer: '/model/init_from/model', code: 'adapter_mismatch', message: /rank 4 .*rank 3/ },
  ]);
});
