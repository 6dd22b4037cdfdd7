import t from 'tap';
import type { ModelConfig, ResolvedModelConfig } from '../../contracts/index.js';
import { presets } from '../presets.js';
import { resolveSpec } from '../resolve-spec.js';
import { DATASET, LLAMA, SMALLEST } from '../testing/documents.js';

const { model_type: _, ...SIZES } = LLAMA;
const GPT2 = {
  model_type: 'gpt2',
  n_embd: 64,
  n_layer: 2,
  n_head: 4,
  vocab_size: 256,
  attn_pdrop: 0,
} as const;

const resolve = (config: object) =>
  resolveSpec({ ...SMALLEST, model: { config: config as ModelConfig } }, DATASET);

t.test('all families and options are accepted', async (t) => {
  const trained: object[] = [
    LLAMA,
    { ...LLAMA, attention_bias: true, mlp_bias: true, rope_scaling: { rope_type: 'linear', factor: 2 } },
    GPT2,
    { ...SIZES, model_type: 'mistral', num_key_value_heads: 2 },
    { ...LLAMA, attention_dropout: 0.1, vocab_size: 128_256 },
    { ...SIZES, model_type: 'mixtral', num_key_value_heads: 2, output_router_logits: true },
    { ...SIZES, model_type: 'qwen2', num_key_value_heads: 2 },
    { ...SIZES, model_type: 'qwen3', num_key_value_heads: 2, tie_word_embeddings: true },
  ];
  for (const config of trained) t.strictSame(resolve(config).errors, [], JSON.stringify(config));
});

t.test('a resolved configuration of each family resolves to itself', async (t) => {
  for (const config of [
    GPT2,
    { ...SIZES, model_type: 'qwen3', num_key_value_heads: 2 },
    ...Object.values(presets),
  ]) {
    const resolved = resolve(config).spec.model.config;
    t.strictSame(resolve(resolved).spec.model.config, resolved);
  }
});

t.test('presets have every field', async (t) => {
  for (const [name, preset] of Object.entries(presets)) {
    const config: ResolvedModelConfig = resolve(preset).spec.model.config;
    t.strictSame(config, preset, name);
  }
});

t.test(
  'a bad model and a bad batch are reported together, without errors that depend on the unknown model',
  async (t) => {
    const { errors } = resolveSpec(
      {
        ...SMALLEST,
        model: { config: { ...LLAMA, hidden_size: 'x' } as unknown as ModelConfig },
        train: { steps: 1, micro_batch_size: 6, optimizer: { param_groups: [{ match: 'nothing' }] } },
      },
      DATASET,
    );
    t.strictSame(
      errors.map(({ pointer }) => pointer),
      ['/model/config/hidden_size', '/train/micro_batch_size'],
    );
  },
);
