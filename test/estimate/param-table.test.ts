/** The contract's table of parameters equals the native core's, for each naming and option. */

import t, { type Test } from 'tap';
import type { Architecture } from '../../contracts/architecture.js';
import { architectureOf, importConfig, layerModules, modelParams } from '../../job-document/index.js';
import { paramTable } from '../../native/js/index.js';

const SIZES = {
  hidden_size: 48,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 101,
};
const GPT2 = { model_type: 'gpt2', n_embd: 48, n_layer: 2, n_head: 4, vocab_size: 101 };

const MODELS: Record<string, object> = {
  llama: { ...SIZES, model_type: 'llama' },
  'llama with biases, tied': {
    ...SIZES,
    model_type: 'llama',
    attention_bias: true,
    mlp_bias: true,
    tie_word_embeddings: true,
  },
  gpt2: GPT2,
  'gpt2, untied': { ...GPT2, tie_word_embeddings: false },
  mistral: { ...SIZES, model_type: 'mistral' },
  qwen2: { ...SIZES, model_type: 'qwen2' },
  mixtral: { ...SIZES, model_type: 'mixtral', num_local_experts: 3 },
  qwen3: { ...SIZES, model_type: 'qwen3', head_dim: 16 },
};

function check(t: Test, architecture: Architecture) {
  const native = paramTable(architecture);
  t.strictSame(
    modelParams(architecture).map(({ name, shape, decays, frozen, quantization }) => ({
      name,
      shape,
      decays,
      frozen,
      quantization,
    })),
    native.map(({ name, shape, group, base, quantization }) => ({
      name,
      shape: [...shape],
      decays: group === 'decay',
      frozen: base,
      quantization,
    })),
  );
}

for (const [name, document] of Object.entries(MODELS)) {
  const architecture = architectureOf(importConfig(document as Record<string, unknown>).config!);
  t.test(name, async (t) => check(t, architecture));
  t.test(`${name}, with adapters`, async (t) => {
    const modules = layerModules(architecture).map((module) => module.replace(/.*\./, ''));
    const shared = { rank: 5, scale: 2, dropout: 0, init: 'gaussian' as const };
    const choices = [
      { target_modules: modules, modules_to_save: [] },
      {
        target_modules: ['attn.c_proj', 'self_attn.v_proj', 'block_sparse_moe.gate', 'w2'],
        modules_to_save: ['model.norm', 'ln_1', 'input_layernorm', 'mlp.c_proj', 'w1'],
      },
    ];
    for (const choice of choices)
      for (const [type, quantization] of [
        ['lora', null],
        ['lora', 'int8'],
        ['dora', null],
      ] as const)
        check(t, { ...architecture, adapter: { type, ...shared, ...choice }, quantization });
  });
}
