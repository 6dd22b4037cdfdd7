import t from 'tap';
import type { FieldErrorCode } from '../../contracts/index.js';
import { importConfig } from './import.js';

const SIZES = {
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 256,
};
const LLAMA = { model_type: 'llama', ...SIZES };
const MISTRAL = { model_type: 'mistral', ...SIZES };
const QWEN2 = { model_type: 'qwen2', ...SIZES };
const MIXTRAL = { model_type: 'mixtral', ...SIZES };
const SMOLLM3 = { model_type: 'smollm3', ...SIZES };
const OLMO3 = { model_type: 'olmo3', ...SIZES };
const GEMMA3 = { model_type: 'gemma3_text', ...SIZES };
const QWEN3_MOE = { model_type: 'qwen3_moe', ...SIZES };
const QWEN2_MOE = { model_type: 'qwen2_moe', ...SIZES };
const PHI3 = { model_type: 'phi3', ...SIZES };
const GLM = { model_type: 'glm', ...SIZES };
const GLM4 = { model_type: 'glm4', ...SIZES };
const GPT2 = { model_type: 'gpt2', n_embd: 64, n_layer: 2, n_head: 4, vocab_size: 256 };

const llama3 = { rope_type: 'llama3', factor: 8, low_freq_factor: 1, high_freq_factor: 4 };

const LONGROPE = { type: 'longrope', short_factor: [1, 1], long_factor: [1, 2] };

type Refusal = [object, FieldErrorCode, string, string?];

/** A refused `rope_scaling` of Llama; the pointer is below it. */
const rope = (scaling: unknown, code: FieldErrorCode, pointer: string, suggestion?: string): Refusal => [
  { ...LLAMA, rope_scaling: scaling },
  code,
  `/rope_scaling${pointer}`,
  suggestion,
];

const REFUSED: Refusal[] = [
  // families
  [{ hidden_size: 64 }, 'missing_field', '/model_type'],
  [{ model_type: 'qwen4' }, 'unknown_value', '/model_type', 'qwen2'],
  [{ model_type: 'bert' }, 'unknown_value', '/model_type'],
  [{ model_type: 'qwen3_next' }, 'unknown_value', '/model_type'],
  [{ model_type: 'gemma3' }, 'unknown_value', '/model_type'],
  [{ model_type: 3 }, 'unknown_value', '/model_type'],
  // fields that change the mathematics
  [{ ...GPT2, scale_attn_weights: false }, 'model_field_unsupported', '/scale_attn_weights', 'true'],
  [
    { ...GPT2, scale_attn_by_inverse_layer_idx: true },
    'model_field_unsupported',
    '/scale_attn_by_inverse_layer_idx',
    'false',
  ],
  [{ ...GPT2, add_cross_attention: true }, 'model_field_unsupported', '/add_cross_attention', 'false'],
  [{ ...GPT2, activation_function: 'relu' }, 'model_field_unsupported', '/activation_function', 'gelu'],
  [{ ...LLAMA, hidden_act: 'gelu' }, 'model_field_unsupported', '/hidden_act', 'silu'],
  [{ ...LLAMA, add_cross_attention: true }, 'model_field_unsupported', '/add_cross_attention', 'false'],
  [{ ...LLAMA, sliding_window: 4096 }, 'model_field_unsupported', '/sliding_window'],
  [{ ...LLAMA, use_sliding_window: true }, 'model_field_unsupported', '/use_sliding_window', 'false'],
  [{ ...QWEN2, use_mrope: true }, 'model_field_unsupported', '/use_mrope', 'false'],
  [{ ...LLAMA, rope_interleaved: true }, 'model_field_unsupported', '/rope_interleaved', 'false'],
  [{ ...MIXTRAL, moe_frequency: 2 }, 'model_field_unsupported', '/moe_frequency', '1'],
  [{ ...LLAMA, partial_rotary_factor: 0.5 }, 'model_field_unsupported', '/partial_rotary_factor', '1'],
  [{ ...LLAMA, quantization_config: { bits: 4 } }, 'model_field_unsupported', '/quantization_config'],
  [{ ...LLAMA, auto_map: { AutoModel: 'x.Y' } }, 'model_field_unsupported', '/auto_map'],
  [{ ...LLAMA, pruned_heads: { 0: [1] } }, 'model_field_unsupported', '/pruned_heads', '{}'],
  [{ ...LLAMA, is_encoder_decoder: true }, 'model_field_unsupported', '/is_encoder_decoder', 'false'],
  [{ ...MIXTRAL, router_jitter_noise: 0.1 }, 'model_field_unsupported', '/router_jitter_noise', '0'],
  [{ ...MISTRAL, layer_types: ['full_attention'] }, 'model_field_unsupported', '/layer_types'],
  [
    { ...QWEN2, layer_types: ['full_attention', 'chunked_attention'] },
    'model_field_unsupported',
    '/layer_types/1',
  ],
  // rotary positions
  ...['dynamic', 'su', 'mrope'].map(
    (ropeType): Refusal => rope({ rope_type: ropeType, factor: 2 }, 'model_field_unsupported', '/rope_type'),
  ),
  [
    { ...LLAMA, rope_parameters: { rope_type: 'llama', factor: 2 } },
    'model_field_unsupported',
    '/rope_parameters/rope_type',
    'llama3',
  ],
  rope({ type: 'linear' }, 'missing_field', '/factor'),
  rope({ type: 'yarn', factor: null }, 'missing_field', '/factor'),
  [
    { ...LLAMA, rope_parameters: { rope_type: 'yarn', rope_theta: 5e5 } },
    'missing_field',
    '/rope_parameters/factor',
  ],
  rope({ rope_type: 'yarn', type: 'linear', factor: 4 }, 'model_field_conflict', '/type'),
  rope({ type: 'linear', factor: 0.5 }, 'out_of_range', '/factor'),
  rope('linear', 'wrong_type', ''),
  rope([], 'wrong_type', ''),
  // Cosines and sines scaled by 0 are no positions.
  rope({ rope_type: 'yarn', factor: 4, attention_factor: 0 }, 'out_of_range', '/attention_factor'),
  rope({ ...llama3, high_freq_factor: 1 }, 'out_of_range', '/high_freq_factor'),
  rope({ rope_type: 'yarn', factor: 2, beta_fast: 1, beta_slow: 2 }, 'out_of_range', '/beta_fast'),
  rope({ ...llama3, partial_rotary_factor: 0.5 }, 'model_field_unsupported', '/partial_rotary_factor', '1'),
  rope({ ...llama3, beta_fast: 32 }, 'unknown_field', '/beta_fast'),
  // Phi-3
  [{ ...PHI3, attention_bias: true }, 'model_field_unsupported', '/attention_bias', 'false'],
  [{ ...PHI3, full_attn_mod: 2 }, 'model_field_unsupported', '/full_attn_mod', '1'],
  [{ ...PHI3, auto_map: { AutoModelForCausalLM: 'x.Y' } }, 'model_field_unsupported', '/auto_map'],
  [
    { ...PHI3, auto_map: { AutoConfig: 'configuration_phi3.Phi3Config' } },
    'model_field_unsupported',
    '/auto_map',
  ],
  [{ ...PHI3, partial_rotary_factor: 0.2 }, 'model_field_unsupported', '/partial_rotary_factor'],
  [{ ...PHI3, partial_rotary_factor: 1.5 }, 'out_of_range', '/partial_rotary_factor'],
  [
    { ...PHI3, rope_scaling: { type: 'yarn', factor: 2 } },
    'model_field_unsupported',
    '/rope_scaling/rope_type',
  ],
  [
    { ...PHI3, partial_rotary_factor: 0.25, rope_scaling: { ...LONGROPE, short_factor: [1] } },
    'wrong_length',
    '/rope_scaling/short_factor',
  ],
  [
    { ...PHI3, partial_rotary_factor: 0.25, rope_scaling: { ...LONGROPE, long_factor: [1, 0] } },
    'out_of_range',
    '/rope_scaling/long_factor/1',
  ],
  [
    { ...PHI3, partial_rotary_factor: 0.25, rope_scaling: { ...LONGROPE, long_factor: undefined } },
    'missing_field',
    '/rope_scaling/long_factor',
  ],
  [
    { ...PHI3, partial_rotary_factor: 0.25, rope_scaling: { ...LONGROPE, long_factor: 'x' } },
    'wrong_type',
    '/rope_scaling/long_factor',
  ],
  [
    {
      ...PHI3,
      partial_rotary_factor: 0.25,
      original_max_position_embeddings: 64,
      rope_scaling: { ...LONGROPE, original_max_position_embeddings: 128 },
    },
    'model_field_unsupported',
    '/rope_scaling/original_max_position_embeddings',
    '64',
  ],
  [
    { ...PHI3, partial_rotary_factor: 0.5, rope_parameters: { partial_rotary_factor: 0.25 } },
    'model_field_conflict',
    '/rope_parameters/partial_rotary_factor',
  ],
  // GLM-4
  [{ ...GLM, partial_rotary_factor: 1.5 }, 'out_of_range', '/partial_rotary_factor'],
  [{ ...GLM4, partial_rotary_factor: 0.01 }, 'model_field_unsupported', '/partial_rotary_factor'],
  [
    { ...GLM4, rope_scaling: { rope_type: 'dynamic', factor: 2 } },
    'model_field_unsupported',
    '/rope_scaling/rope_type',
  ],
  [
    { ...GLM4, head_dim: 8, rope_scaling: { ...LONGROPE, short_factor: [1] } },
    'wrong_length',
    '/rope_scaling/short_factor',
  ],
  [{ ...GLM4, hidden_act: 'gelu' }, 'model_field_unsupported', '/hidden_act', 'silu'],
  [{ ...GLM4, sliding_window: 16 }, 'unknown_field', '/sliding_window'],
  // unknown fields
  [{ ...LLAMA, hiden_act: 'silu' }, 'unknown_field', '/hiden_act', 'hidden_act'],
  [{ ...LLAMA, 'a/b~c': 1 }, 'unknown_field', '/a~1b~0c'],
  [{ ...LLAMA, n_embd: 64 }, 'unknown_field', '/n_embd'],
  // fields that contradict each other
  [{ ...GPT2, hidden_size: 128 }, 'model_field_conflict', '/hidden_size'],
  [
    { ...LLAMA, rope_scaling: llama3, rope_parameters: { rope_type: 'default' } },
    'model_field_conflict',
    '/rope_parameters',
  ],
  [
    { ...LLAMA, rope_theta: 5, rope_scaling: { ...llama3, rope_theta: 6 } },
    'model_field_conflict',
    '/rope_scaling/rope_theta',
  ],
  [
    { ...QWEN2, layer_types: ['full_attention', 'sliding_attention'] },
    'model_field_conflict',
    '/layer_types',
  ],
  [{ ...QWEN2, layer_types: ['full_attention'] }, 'wrong_length', '/layer_types'],
  [
    { ...GEMMA3, hidden_activation: 'gelu' },
    'model_field_unsupported',
    '/hidden_activation',
    'gelu_pytorch_tanh',
  ],
  [{ ...GEMMA3, attn_logit_softcapping: 50 }, 'model_field_unsupported', '/attn_logit_softcapping'],
  [{ ...GEMMA3, final_logit_softcapping: 30 }, 'model_field_unsupported', '/final_logit_softcapping'],
  [
    { ...GEMMA3, use_bidirectional_attention: true },
    'model_field_unsupported',
    '/use_bidirectional_attention',
    'false',
  ],
  [{ ...GEMMA3, rope_parameters: { rope_type: 'default' } }, 'model_field_unsupported', '/rope_parameters'],
  [
    {
      ...GEMMA3,
      rope_parameters: { full_attention: {}, sliding_attention: { rope_type: 'linear' } },
    },
    'model_field_unsupported',
    '/rope_parameters/sliding_attention/rope_type',
    '"default"',
  ],
  [
    {
      ...GEMMA3,
      rope_local_base_freq: 1e4,
      rope_parameters: { full_attention: {}, sliding_attention: { rope_theta: 1e3 } },
    },
    'model_field_conflict',
    '/rope_parameters/sliding_attention/rope_theta',
  ],
  [{ ...OLMO3, rope_theta: 10_000 }, 'model_field_unsupported', '/rope_theta', '500000'],
  [
    { ...OLMO3, rope_parameters: { full_attention: {}, sliding_attention: { rope_type: 'yarn' } } },
    'model_field_unsupported',
    '/rope_parameters/sliding_attention/rope_type',
    '"default"',
  ],
  [
    { ...QWEN2_MOE, shared_expert_intermediate_size: 31 },
    'intermediate_size_odd',
    '/shared_expert_intermediate_size',
    '32',
  ],
  [{ ...QWEN2_MOE, use_sliding_window: true, sliding_window: 0 }, 'out_of_range', '/sliding_window'],
  [{ ...QWEN3_MOE, decoder_sparse_step: 2 }, 'model_field_unsupported', '/decoder_sparse_step', '1'],
  [{ ...QWEN3_MOE, mlp_only_layers: [0] }, 'model_field_unsupported', '/mlp_only_layers', '[]'],
  [{ ...QWEN3_MOE, moe_intermediate_size: 31 }, 'intermediate_size_odd', '/moe_intermediate_size', '32'],
  [{ ...SMOLLM3, no_rope_layers: [1] }, 'wrong_length', '/no_rope_layers'],
  [{ ...SMOLLM3, no_rope_layers: [1, 2] }, 'model_field_unsupported', '/no_rope_layers/1'],
  [{ model_type: 'granite', ...SIZES, attention_multiplier: 0 }, 'out_of_range', '/attention_multiplier'],
  // types and ranges
  [{ ...LLAMA, hidden_size: '64' }, 'wrong_type', '/hidden_size'],
  [{ ...LLAMA, hidden_size: 64.5 }, 'wrong_type', '/hidden_size'],
  [{ ...LLAMA, hidden_size: null }, 'missing_field', '/hidden_size'],
  [{ ...LLAMA, num_hidden_layers: 0 }, 'out_of_range', '/num_hidden_layers'],
  [{ ...LLAMA, vocab_size: 1e9 }, 'out_of_range', '/vocab_size'],
  [{ ...LLAMA, rms_norm_eps: 0 }, 'out_of_range', '/rms_norm_eps'],
  [{ ...LLAMA, rope_theta: Infinity }, 'wrong_type', '/rope_theta'],
  [{ ...LLAMA, attention_dropout: 1 }, 'out_of_range', '/attention_dropout'],
  [{ ...LLAMA, attention_bias: 1 }, 'wrong_type', '/attention_bias'],
  [{ ...LLAMA, hidden_act: 1 }, 'wrong_type', '/hidden_act'],
  [{ ...LLAMA, eos_token_id: 'x' }, 'wrong_type', '/eos_token_id'],
  [{ ...MISTRAL, sliding_window: 0 }, 'out_of_range', '/sliding_window'],
  [{ ...QWEN2, layer_types: 'full_attention' }, 'wrong_type', '/layer_types'],
  // sizes that do not fit each other
  [{ ...LLAMA, hidden_size: 66 }, 'hidden_size_not_divisible', '/hidden_size', '64'],
  [{ ...GPT2, n_embd: 66 }, 'hidden_size_not_divisible', '/n_embd', '64'],
  [{ ...GPT2, n_inner: 31 }, 'intermediate_size_odd', '/n_inner', '32'],
  [{ ...LLAMA, head_dim: 15 }, 'head_dim_odd', '/head_dim', '16'],
  [{ ...LLAMA, num_key_value_heads: 3 }, 'heads_not_divisible', '/num_key_value_heads', '2'],
  [
    { ...MIXTRAL, num_local_experts: 4, num_experts_per_tok: 5 },
    'experts_per_token_exceeds_experts',
    '/num_experts_per_tok',
    '4',
  ],
];

for (const [document, code, pointer, suggestion] of REFUSED) {
  t.test(`${code} ${pointer} of ${JSON.stringify(document).slice(0, 60)}`, async (t) => {
    const { errors } = importConfig(document as Record<string, unknown>);
    t.strictSame(
      errors.map((error) => [error.code, error.pointer, error.suggestion]),
      [[code, pointer, suggestion]],
    );
    t.ok(errors[0]!.message.length > 0);
  });
}

t.test('all bad fields at once', async (t) => {
  const { config, errors } = importConfig({
    ...LLAMA,
    hidden_size: undefined,
    vocab_size: -1,
    auto_map: {},
    rope_scaling: { rope_type: 'dynamic', factor: 2 },
    nonsense: true,
  });
  t.equal(config, null);
  t.strictSame(
    errors.map(({ pointer }) => pointer),
    ['/auto_map', '/hidden_size', '/vocab_size', '/rope_scaling/rope_type', '/nonsense'],
  );
});
