/** Fields of each family in its published configurations, and rules between them. */
import t from 'tap';
import { ALL, architecture, PLAIN, SMALL } from '../../testing/configs.js';

t.test('the fields of SmolLM3-3B', async (t) => {
  const found = architecture({
    architectures: ['SmolLM3ForCausalLM'],
    model_type: 'smollm3',
    hidden_size: 2048,
    intermediate_size: 11_008,
    max_window_layers: 28,
    num_attention_heads: 16,
    num_hidden_layers: 36,
    no_rope_layer_interval: 4,
    max_position_embeddings: 65_536,
    rope_theta: 5_000_000,
    sliding_window: null,
    use_sliding_window: false,
    vocab_size: 128_256,
  });
  t.match(found, { ...PLAIN, num_key_value_heads: 4, head_dim: 128, tie_word_embeddings: true });
  const without = found.layer_rope.flatMap((rope, layer) => (rope === 0 ? [layer] : []));
  t.strictSame(without, [3, 7, 11, 15, 19, 23, 27, 31, 35]);
  t.strictSame(found.layer_windows, ALL(0, 36));
});

t.test('SmolLM3: the layers without positions have the sliding window', async (t) => {
  const sliding = { use_sliding_window: true, sliding_window: 7 };
  const found = architecture({ model_type: 'smollm3', ...SMALL, no_rope_layers: [1, 0, 1, 0], ...sliding });
  t.strictSame(found.layer_windows, [0, 7, 0, 7]);
});

t.test('Granite: factors of embeddings, scores, residual additions and logits', async (t) => {
  const found = architecture({
    model_type: 'granite',
    ...SMALL,
    embedding_multiplier: 12,
    attention_multiplier: 0.0078125,
    residual_multiplier: 0.22,
    logits_scaling: 16,
    rope_scaling: null,
    rope_theta: 1e7,
  });
  t.match(found, {
    ...PLAIN,
    embedding_scale: 12,
    attention_scale: 0.0078125,
    residual_scale: 0.22,
    logits_scale: 1 / 16,
  });
  const plain = architecture({ model_type: 'granite', ...SMALL });
  t.match(plain, { embedding_scale: 1, attention_scale: 1, residual_scale: 1, logits_scale: 1 });
});

t.test('OLMo 2 and 3: norms over all heads; scaled frequencies only without a window', async (t) => {
  const olmo2 = architecture({ model_type: 'olmo2', ...SMALL });
  t.match(olmo2, { ...PLAIN, naming: 'olmo2', qk_norm: true, qk_norm_scope: 'all', norm_eps: 1e-5 });
  const yarn = { rope_type: 'yarn', factor: 8, original_max_position_embeddings: 8192 };
  const olmo3 = architecture({ model_type: 'olmo3', ...SMALL, rope_theta: 500_000, rope_scaling: yarn });
  t.strictSame(olmo3.layer_windows, [4096, 4096, 4096, 0]);
  t.strictSame(olmo3.layer_rope, [2, 2, 2, 1]);
  t.match(olmo3, { rope_theta: 500_000, local_rope_theta: 500_000, rope_scaling: { type: 'yarn' } });
  const byType = { full_attention: yarn, sliding_attention: { rope_type: 'default', rope_theta: 5e5 } };
  t.strictSame(architecture({ model_type: 'olmo3', ...SMALL, rope_parameters: byType }), olmo3);
  t.strictSame(architecture({ model_type: 'olmo3', ...SMALL }).layer_rope, [], 'all frequencies are equal');
});

t.test('Gemma 3: norms with an offset, and two bases in a pattern of layers', async (t) => {
  const sizes = { ...SMALL, num_hidden_layers: 7 };
  // Fields of google/gemma-3-1b-it that are not its sizes.
  const published = {
    model_type: 'gemma3_text',
    architectures: ['Gemma3ForCausalLM'],
    attention_bias: false,
    attention_dropout: 0,
    attn_logit_softcapping: null,
    bos_token_id: 2,
    cache_implementation: 'hybrid',
    eos_token_id: [1, 106],
    final_logit_softcapping: null,
    head_dim: 256,
    hidden_activation: 'gelu_pytorch_tanh',
    initializer_range: 0.02,
    max_position_embeddings: 32_768,
    pad_token_id: 0,
    query_pre_attn_scalar: 256,
    rms_norm_eps: 1e-6,
    rope_local_base_freq: 10_000,
    rope_scaling: { factor: 8, rope_type: 'linear' },
    rope_theta: 1_000_000,
    sliding_window: 512,
    sliding_window_pattern: 6,
    torch_dtype: 'bfloat16',
    use_cache: true,
  };
  const found = architecture({ ...sizes, ...published });
  t.match(found, {
    naming: 'gemma',
    norm_offset: 1,
    mlp: 'geglu_tanh',
    qk_norm: true,
    attention_scale: 1 / 16,
    embedding_scale: Math.sqrt(sizes.hidden_size),
    rounds_embedding_scale: true,
    tie_word_embeddings: true,
    rope_theta: 1e6,
    local_rope_theta: 1e4,
    rope_scaling: { type: 'linear', factor: 8 },
  });
  t.strictSame(found.layer_windows, [512, 512, 512, 512, 512, 0, 512]);
  t.strictSame(found.layer_rope, [2, 2, 2, 2, 2, 1, 2]);
  const { rope_theta, rope_local_base_freq, rope_scaling, ...rest } = published;
  const byType = {
    full_attention: { ...rope_scaling, rope_theta },
    sliding_attention: { rope_type: 'default', rope_theta: rope_local_base_freq },
  };
  t.strictSame(architecture({ ...sizes, ...rest, rope_parameters: byType }), found);
  t.strictSame(
    architecture({ ...sizes, ...rest, rope_theta: 2e6, rope_local_base_freq: 2e4 }).rope_theta,
    2e6,
  );
});

t.test('Gemma 2: soft caps, and a window in every second layer', async (t) => {
  // Fields of google/gemma-2-9b that are not its sizes; transformers does not read sliding_window_size.
  const published = {
    model_type: 'gemma2',
    attn_logit_softcapping: 50,
    cache_implementation: 'hybrid',
    final_logit_softcapping: 30,
    hidden_act: 'gelu_pytorch_tanh',
    hidden_activation: 'gelu_pytorch_tanh',
    query_pre_attn_scalar: 256,
    rope_theta: 10_000,
    sliding_window: 4096,
    sliding_window_size: 4096,
  };
  const found = architecture({ ...SMALL, ...published });
  t.match(found, {
    naming: 'gemma',
    norm_offset: 1,
    qk_norm: false,
    attention_soft_cap: 50,
    logits_soft_cap: 30,
    layer_windows: [4096, 0, 4096, 0],
    layer_rope: [],
  });
  t.strictSame(architecture({ ...SMALL, model_type: 'gemma2' }), found, 'the defaults');
  const none = { attn_logit_softcapping: null, final_logit_softcapping: null };
  t.match(architecture({ ...SMALL, model_type: 'gemma2', ...none }), {
    attention_soft_cap: 0,
    logits_soft_cap: 0,
  });
});

t.test('Phi-3: fused projections, part of each head rotated, factors by length', async (t) => {
  const phi4 = {
    model_type: 'phi3',
    ...SMALL,
    tie_word_embeddings: true,
    partial_rotary_factor: 0.75,
    max_position_embeddings: 131_072,
    original_max_position_embeddings: 4096,
    sliding_window: 262_144,
    auto_map: { AutoModelForCausalLM: 'modeling_phi3.Phi3ForCausalLM', AutoTokenizer: 'Xenova/gpt-4o' },
    attention_bias: false,
    mlp_bias: false,
    lm_head_bias: false,
    full_attn_mod: 1,
    interpolate_factor: 1,
    embd_pdrop: 0,
  };
  const width = SMALL.hidden_size / SMALL.num_attention_heads;
  const pairs = (0.75 * width) / 2;
  const factors = (from: number) => Array.from({ length: pairs }, (_, i) => from + i / 8);
  const scaling = { type: 'longrope', short_factor: factors(1), long_factor: factors(2) };
  const found = architecture({ ...phi4, rope_scaling: scaling });
  t.match(found, {
    ...PLAIN,
    naming: 'phi3',
    rotary_dim: 2 * pairs,
    tie_word_embeddings: true,
    residual_dropout: 0,
    rope_scaling: { ...scaling, factor: 32, original_max_position_embeddings: 4096, attention_factor: 0 },
  });
  t.strictSame(found.layer_windows, Array(SMALL.num_hidden_layers).fill(262_144));
  const { partial_rotary_factor: _, ...rest } = phi4;
  const five = { ...scaling, type: undefined, rope_type: 'longrope', original_max_position_embeddings: 4096 };
  const parameters = { ...five, rope_theta: 10_000, partial_rotary_factor: 0.75 };
  t.strictSame(architecture({ ...rest, rope_parameters: parameters }), found, 'spelling of transformers 5');
  t.strictSame(architecture({ ...phi4, rope_scaling: { ...scaling, type: 'su' } }), found, 'the first name');
  const saved = { AutoModelForCausalLM: 'microsoft/Phi-3--modeling_phi3.Phi3ForCausalLM' };
  t.strictSame(architecture({ ...phi4, rope_scaling: scaling, auto_map: saved }), found);
  t.match(architecture({ ...phi4, rope_scaling: { ...scaling, factor: 8, attention_factor: 1.5 } }), {
    rope_scaling: { factor: 8, attention_factor: 1.5 },
  });
  const plain = architecture({ model_type: 'phi3', ...SMALL, resid_pdrop: 0.25 });
  t.match(plain, { rotary_dim: width, rope_scaling: { type: 'none' }, residual_dropout: 0.25 });
  t.strictSame(plain.layer_windows, Array(SMALL.num_hidden_layers).fill(0));
});

t.test('GLM-4: four norms, neighbouring elements in half of each head rotated', async (t) => {
  // Fields of THUDM/GLM-4-32B-0414 that are not its sizes.
  const published = {
    model_type: 'glm4',
    architectures: ['Glm4ForCausalLM'],
    attention_bias: false,
    attention_dropout: 0,
    eos_token_id: [151_329, 151_336, 151_338],
    head_dim: 128,
    hidden_act: 'silu',
    initializer_range: 0.02,
    max_position_embeddings: 32_768,
    pad_token_id: 151_329,
    partial_rotary_factor: 0.5,
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    tie_word_embeddings: false,
    torch_dtype: 'bfloat16',
    use_cache: true,
  };
  const found = architecture({ ...SMALL, ...published });
  t.match(found, {
    ...PLAIN,
    naming: 'glm4',
    head_dim: 128,
    rotary_dim: 64,
    rope_interleaved: true,
    norm_eps: 1e-5,
  });
  const { partial_rotary_factor, rope_theta, ...rest } = published;
  const five = { rope_type: 'default', rope_theta, partial_rotary_factor };
  t.strictSame(architecture({ ...SMALL, ...rest, rope_parameters: five }), found);
  // transformers 5 writes its default beside another share.
  const share = { ...five, partial_rotary_factor: 0.75 };
  t.equal(architecture({ ...SMALL, ...published, rope_parameters: share }).rotary_dim, 96);
  const { naming, ...glm } = architecture({ ...SMALL, ...published, model_type: 'glm' });
  t.equal(naming, 'glm');
  t.strictSame({ naming: 'glm4', ...glm }, found, 'GLM-4 of 2024 has two norms fewer');
  const yarn = { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 32_768 };
  t.match(architecture({ model_type: 'glm4', ...SMALL, num_key_value_heads: null, rope_scaling: yarn }), {
    num_key_value_heads: 4,
    qkv_bias: true,
    output_bias: false,
    rotary_dim: 64,
    rope_scaling: { type: 'yarn', factor: 4 },
  });
});

t.test('longrope of other families', async (t) => {
  const width = SMALL.hidden_size / SMALL.num_attention_heads;
  const ones = Array<number>(width / 2).fill(1);
  const scaling = { rope_type: 'longrope', short_factor: ones, long_factor: ones };
  const given = { ...scaling, original_max_position_embeddings: 512 };
  t.match(
    architecture({ model_type: 'llama', ...SMALL, max_position_embeddings: 2048, rope_scaling: given }),
    {
      rope_scaling: {
        type: 'longrope',
        factor: 4,
        original_max_position_embeddings: 512,
        short_factor: ones,
      },
    },
  );
});
