import { readFileSync } from 'node:fs';
import t from 'tap';
import { ALL, architecture, PLAIN, SMALL } from '../testing/configs.js';
import { published } from '../testing/published.js';
import { importConfig } from './import.js';

/** Meaning of some published configurations. */
const WANTED: Record<string, object> = {
  gpt2: {
    naming: 'gpt2',
    hidden_size: 768,
    intermediate_size: 3072,
    num_hidden_layers: 12,
    num_attention_heads: 12,
    num_key_value_heads: 12,
    head_dim: 64,
    vocab_size: 50_257,
    max_position_embeddings: 1024,
    norm: 'layer',
    norm_eps: 1e-5,
    positions: 'learned',
    qkv_bias: true,
    output_bias: true,
    mlp_bias: true,
    mlp: 'gelu_tanh',
    layer_windows: ALL(0, 12),
    tie_word_embeddings: true,
    embedding_dropout: 0.1,
    attention_dropout: 0.1,
    residual_dropout: 0.1,
    residual_initializer_range: 0.02 / Math.sqrt(24),
  },
  'Llama-2-7b-hf': {
    ...PLAIN,
    hidden_size: 4096,
    intermediate_size: 11_008,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 32,
    head_dim: 128,
    vocab_size: 32_000,
    max_position_embeddings: 2048,
    norm_eps: 1e-5,
    rope_theta: 10_000,
    layer_windows: ALL(0, 32),
  },
  'Llama-3.1-8B-Instruct': {
    ...PLAIN,
    intermediate_size: 14_336,
    num_key_value_heads: 8,
    head_dim: 128,
    vocab_size: 128_256,
    max_position_embeddings: 131_072,
    rope_theta: 500_000,
    rope_scaling: {
      type: 'llama3',
      factor: 8,
      low_freq_factor: 1,
      high_freq_factor: 4,
      original_max_position_embeddings: 8192,
      attention_factor: 0,
    },
  },
  'zephyr-7b-beta': {
    ...PLAIN,
    num_key_value_heads: 8,
    head_dim: 128,
    max_position_embeddings: 32_768,
    layer_windows: ALL(4096, 32),
  },
  'Qwen2.5-0.5B-Instruct': {
    ...PLAIN,
    hidden_size: 896,
    intermediate_size: 4864,
    num_attention_heads: 14,
    num_key_value_heads: 2,
    head_dim: 64,
    vocab_size: 151_936,
    norm_eps: 1e-6,
    rope_theta: 1_000_000,
    qkv_bias: true,
    tie_word_embeddings: true,
    layer_windows: ALL(0, 24),
  },
  'Qwen3-0.6B, tuned': {
    ...PLAIN,
    hidden_size: 1024,
    num_attention_heads: 16,
    num_key_value_heads: 8,
    head_dim: 128,
    qk_norm: true,
    tie_word_embeddings: true,
    layer_windows: ALL(0, 28),
  },
  'Mixtral-8x22B': {
    ...PLAIN,
    naming: 'mixtral',
    intermediate_size: 16_384,
    num_attention_heads: 48,
    num_key_value_heads: 8,
    rope_theta: 1_000_000,
    num_experts: 8,
    experts_per_token: 2,
    layer_windows: ALL(0, 56),
  },
};

const PUBLIC_MODELS = published(readFileSync('job-document/testing/public-models.json', 'utf8'));

for (const [name, wanted] of Object.entries(WANTED)) {
  t.test(`the config.json of ${name}`, async (t) => {
    t.match(architecture(PUBLIC_MODELS[name]!.config), wanted);
  });
}

const SMALL_GPT2 = { model_type: 'gpt2', n_embd: 64, n_layer: 2, n_head: 4, vocab_size: 256 };

t.test('defaults of each family', async (t) => {
  const sizes = { hidden_size: 256, intermediate_size: 128, num_hidden_layers: 2, num_attention_heads: 32 };
  const defaults = (modelType: string) => architecture({ model_type: modelType, ...sizes, vocab_size: 256 });
  t.match(defaults('llama'), {
    num_key_value_heads: 32,
    max_position_embeddings: 2048,
    norm_eps: 1e-6,
    rope_theta: 10_000,
  });
  t.match(defaults('mistral'), {
    num_key_value_heads: 8,
    max_position_embeddings: 131_072,
    layer_windows: [4096, 4096],
  });
  t.match(defaults('qwen2'), {
    num_key_value_heads: 32,
    max_position_embeddings: 32_768,
    layer_windows: [0, 0],
  });
  t.match(defaults('qwen3'), { head_dim: 128, max_position_embeddings: 32_768, layer_windows: [0, 0] });
  t.match(defaults('mixtral'), {
    num_key_value_heads: 8,
    norm_eps: 1e-5,
    rope_theta: 1_000_000,
    layer_windows: [0, 0],
    num_experts: 8,
    experts_per_token: 2,
    router_aux_loss_coef: 0,
  });
  t.match(architecture(SMALL_GPT2), {
    intermediate_size: 256,
    max_position_embeddings: 1024,
    norm_eps: 1e-5,
  });
});

t.test('null equals an absent field, except for a window', async (t) => {
  const mistral = { ...SMALL, model_type: 'mistral', num_key_value_heads: null, head_dim: null };
  t.match(architecture({ ...mistral, rope_scaling: null, sliding_window: null }), {
    num_key_value_heads: 4,
    head_dim: 16,
    layer_windows: [0, 0, 0, 0],
  });
});

t.test('both spellings of rotary positions', async (t) => {
  const llama = { model_type: 'llama', ...SMALL };
  const wanted = { rope_theta: 5e5, rope_scaling: { type: 'linear', factor: 4 } };
  t.match(architecture({ ...llama, rope_theta: 5e5, rope_scaling: { type: 'linear', factor: 4 } }), wanted);
  const ropeParameters = { rope_type: 'linear', factor: 4, rope_theta: 5e5 };
  t.match(architecture({ ...llama, rope_parameters: ropeParameters }), wanted);
  t.match(architecture({ ...llama, rope_parameters: { rope_type: 'default', rope_theta: 5e5 } }), {
    rope_theta: 5e5,
    rope_scaling: { type: 'none' },
  });
  // The ranks compute the default of the attention factor from these fields.
  const yarn = { rope_type: 'yarn', factor: 4 };
  const given = (ropeScaling: object) => architecture({ ...llama, rope_scaling: ropeScaling }).rope_scaling;
  t.match(given(yarn), { attention_factor: 0, mscale: 0, mscale_all_dim: 0 });
  t.match(given({ ...yarn, attention_factor: 0.5 }), { attention_factor: 0.5 });
  const mscales = { mscale: 2, mscale_all_dim: 0.5 };
  t.match(given({ ...yarn, ...mscales }), { attention_factor: 0, ...mscales });
  t.match(
    architecture({ ...llama, rope_scaling: { ...yarn, beta_fast: 16, truncate: false } }).rope_scaling,
    {
      type: 'yarn',
      beta_fast: 16,
      beta_slow: 1,
      truncate: false,
      original_max_position_embeddings: 2048,
    },
  );
});

t.test('windows of some layers', async (t) => {
  const qwen = { model_type: 'qwen2', ...SMALL, sliding_window: 16 };
  const windows = (changes: object) => architecture({ ...qwen, ...changes }).layer_windows;
  t.strictSame(windows({}), [0, 0, 0, 0]);
  t.strictSame(windows({ use_sliding_window: true, max_window_layers: 3 }), [0, 0, 0, 16]);
  const layerTypes = ['sliding_attention', 'full_attention', 'sliding_attention', 'full_attention'];
  t.strictSame(windows({ use_sliding_window: true, layer_types: layerTypes }), [16, 0, 16, 0]);
});

t.test('other names, other activations, the auxiliary loss', async (t) => {
  const { n_embd, n_layer, n_head, ...rest } = SMALL_GPT2;
  const renamed = { ...rest, hidden_size: n_embd, num_hidden_layers: n_layer, num_attention_heads: n_head };
  t.strictSame(architecture(renamed), architecture(SMALL_GPT2));
  t.equal(architecture({ ...SMALL_GPT2, activation_function: 'gelu' }).mlp, 'gelu');
  t.equal(architecture({ ...SMALL_GPT2, activation_function: 'gelu_pytorch_tanh' }).mlp, 'gelu_tanh');
  t.strictSame(architecture({ ...SMALL_GPT2, reorder_and_upcast_attn: true }), architecture(SMALL_GPT2));
  const mixtral = { model_type: 'mixtral', ...SMALL, num_experts: 4, router_aux_loss_coef: 0.02 };
  t.match(architecture(mixtral), { num_experts: 4, router_aux_loss_coef: 0 });
  t.equal(architecture({ ...mixtral, output_router_logits: true }).router_aux_loss_coef, 0.02);
  const biases = architecture({ model_type: 'qwen3', ...SMALL, attention_bias: true });
  t.match(biases, { qkv_bias: true, output_bias: true, mlp_bias: false, qk_norm: true });
});

t.test('ids of special tokens are kept, other harmless fields are dropped', async (t) => {
  const { config } = importConfig({ ...PUBLIC_MODELS['Llama-3.1-8B-Instruct']?.config, pad_token_id: null });
  t.match(config, { bos_token_id: 128_000, eos_token_id: [128_001, 128_008, 128_009], pad_token_id: null });
  t.notOk('torch_dtype' in config!);
  t.notOk('pad_token_id' in importConfig(SMALL_GPT2).config!);
});
