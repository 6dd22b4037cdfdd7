import t from 'tap';
import { importConfig } from '../../job-document/index.js';
import { architectureMetadata, ggufName, ropeTensors, unsupportedModel } from './architecture.js';

const SIZES = {
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 256,
  max_position_embeddings: 4096,
};

function configOf(fields: Record<string, unknown>) {
  const { config, errors } = importConfig(fields.model_type === 'gpt2' ? fields : { ...SIZES, ...fields });
  if (config === null) throw new Error(JSON.stringify(errors));
  return config;
}

const LONGROPE = { type: 'longrope', short_factor: [1, 1, 1, 2], long_factor: [1, 3, 5, 7] };

const metadataOf = (fields: Record<string, unknown>) =>
  Object.fromEntries(architectureMetadata(configOf(fields)).map(([key, { value }]) => [key, value]));

t.test('models that llama.cpp would compute otherwise', async (t) => {
  const llama3 = { rope_type: 'llama3', factor: 8, low_freq_factor: 1, high_freq_factor: 4 };
  const gemma3 = { model_type: 'gemma3_text', num_hidden_layers: 6 };
  const gpt2 = { model_type: 'gpt2', n_embd: 32, n_layer: 1, n_head: 4, vocab_size: 256 };
  for (const [fields, problem] of [
    [{ ...gpt2, activation_function: 'gelu' }, /gelu_new/],
    [gpt2, null],
    [{ model_type: 'llama', attention_bias: true, mlp_bias: true, rope_scaling: llama3 }, null],
    [{ model_type: 'qwen2', rope_scaling: llama3 }, /rope_type llama3 for qwen2/],
    [{ model_type: 'qwen2', head_dim: 16 }, /16 × 4 is not 32/],
    [{ model_type: 'olmo2' }, null],
    [{ model_type: 'olmo2', attention_bias: true }, /biases/],
    [{ model_type: 'olmo3' }, /differ by layer/],
    [{ model_type: 'gemma2' }, null],
    [{ model_type: 'gemma2', layer_types: ['full_attention', 'full_attention'] }, /multiple of 2/],
    [{ ...gemma3 }, null],
    [{ ...gemma3, attention_bias: true }, /biases/],
    [{ ...gemma3, sliding_window_pattern: 2 }, /multiple of 6/],
    [{ ...gemma3, query_pre_attn_scalar: 20 }, /query_pre_attn_scalar 256/],
    [{ ...gemma3, num_hidden_layers: 62, query_pre_attn_scalar: 8 }, null],
    [{ ...gemma3, rope_scaling: { rope_type: 'yarn', factor: 4 } }, /all layers of gemma/],
    [{ model_type: 'smollm3' }, null],
    [{ model_type: 'smollm3', no_rope_layers: [0, 1] }, /no_rope_layers/],
    [{ model_type: 'smollm3', mlp_bias: true }, /biases/],
    [{ model_type: 'granite', attention_bias: true }, null],
    [{ model_type: 'glm', head_dim: 8 }, null],
    [{ model_type: 'glm', head_dim: 16 }, /16 × 4 is not 32/],
    [{ model_type: 'qwen2_moe' }, null],
    [{ model_type: 'qwen2_moe', norm_topk_prob: true }, /norm_topk_prob/],
    [{ model_type: 'qwen2_moe', tie_word_embeddings: true }, /tied/],
    [{ model_type: 'qwen2_moe', head_dim: 16 }, /16 × 4 is not 32/],
    [{ model_type: 'qwen3_moe', norm_topk_prob: true }, null],
    [{ model_type: 'qwen3_moe' }, /norm_topk_prob/],
    [{ model_type: 'glm4' }, null],
    [{ model_type: 'glm4', rope_scaling: llama3 }, /rope_type llama3 for glm4/],
    [{ model_type: 'phi3' }, null],
    [{ model_type: 'phi3', head_dim: 16 }, /16 × 4 is not 32/],
    [
      { model_type: 'mistral', rope_scaling: { ...LONGROPE, original_max_position_embeddings: 64 } },
      /rope_type longrope for mistral/,
    ],
    [{ model_type: 'qwen3', head_dim: 16 }, null],
    [{ model_type: 'qwen3', head_dim: 16, attention_bias: true }, /attention_bias/],
    [{ model_type: 'llama', rope_scaling: { rope_type: 'yarn', factor: 4, truncate: false } }, /truncate/],
  ] as const) {
    const found = unsupportedModel(configOf(fields));
    if (problem === null) t.equal(found, null);
    else t.match(found, problem);
  }
});

t.test('a name does not change how llama.cpp tokenizes', async (t) => {
  t.equal(ggufName('my-phi-3-mini of PHI3'), 'my-Phi 3-mini of Phi 3');
  t.equal(ggufName('phi-4'), 'phi-4');
});

t.test('the context ends where a window begins to matter', async (t) => {
  t.equal(metadataOf({ model_type: 'mistral', sliding_window: 1024 })['llama.context_length'], 1024);
  t.equal(metadataOf({ model_type: 'mistral', sliding_window: null })['llama.context_length'], 4096);
  const qwen2 = { model_type: 'qwen2', use_sliding_window: true, sliding_window: 512, max_window_layers: 1 };
  t.equal(metadataOf(qwen2)['qwen2.context_length'], 512);
});

t.test('a window of gemma3 does not end the context', async (t) => {
  const found = metadataOf({ model_type: 'gemma3_text', sliding_window: 512, rope_theta: 5e5 });
  t.match(found, {
    'gemma3.context_length': 4096,
    'gemma3.attention.sliding_window': 512,
    'gemma3.rope.freq_base': 5e5,
    'gemma3.rope.freq_base_swa': 10_000,
  });
  t.notOk('gemma3.embedding_scale' in found, 'llama.cpp has it');
});

t.test('rotary positions', async (t) => {
  t.match(
    metadataOf({ model_type: 'llama', head_dim: 16, rope_scaling: { rope_type: 'linear', factor: 2 } }),
    {
      'llama.rope.dimension_count': 16,
      'llama.attention.key_length': 16,
      'llama.rope.scaling.type': 'linear',
      'llama.rope.scaling.factor': 2,
    },
  );
  const yarn = { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 1024 };
  const factorOf = (more: Record<string, number>) =>
    metadataOf({ model_type: 'qwen3', rope_scaling: { ...yarn, ...more } })['qwen3.rope.scaling.attn_factor'];
  t.equal(factorOf({}), 1);
  const whole = 0.1 * Math.log(4) + 1;
  t.equal(factorOf({ attention_factor: 1.5 }), 1.5 / whole);
  t.equal(factorOf({ mscale: 1, mscale_all_dim: 1 }), 1 / whole);
});

t.test('divisors of the frequencies of llama3', async (t) => {
  const ropeScaling = {
    rope_type: 'llama3',
    factor: 8,
    low_freq_factor: 1,
    high_freq_factor: 4,
    original_max_position_embeddings: 32,
  };
  const tensors = ropeTensors(configOf({ model_type: 'llama', head_dim: 8, rope_scaling: ropeScaling }));
  t.same(ropeTensors(configOf({ model_type: 'llama' })), {});
  // Of 32 positions the first pair rotates 5.1 times, the others less than once.
  t.same([...(tensors['rope_freqs.weight'] ?? [])], [1, 8, 8, 8]);
});

t.test('phi3 rotates a part of each head, with factors by the length of the context', async (t) => {
  const phi3 = {
    model_type: 'phi3',
    hidden_size: 48,
    partial_rotary_factor: 0.7,
    original_max_position_embeddings: 64,
    rope_scaling: LONGROPE,
  };
  t.match(metadataOf(phi3), {
    'phi3.rope.dimension_count': 8,
    'phi3.attention.key_length': 12,
    'phi3.rope.scaling.original_context_length': 64,
    'phi3.rope.scaling.attn_factor': Math.sqrt(1 + Math.log(64) / Math.log(64)),
  });
  t.same(ropeTensors(configOf(phi3)), {
    'rope_factors_long.weight': Float32Array.of(1, 3, 5, 7),
    'rope_factors_short.weight': Float32Array.of(1, 1, 1, 2),
  });
  const { rope_scaling, ...plain } = phi3;
  t.same(ropeTensors(configOf(plain)), {});
  const given = { ...phi3, rope_scaling: { ...rope_scaling, attention_factor: 1.25, factor: 8 } };
  t.equal(metadataOf(given)['phi3.rope.scaling.attn_factor'], 1.25);
});
