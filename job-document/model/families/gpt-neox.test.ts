/** GPT-NeoX: the fields of a Pythia, in the spellings of transformers 4 and 5. */
import t from 'tap';
import { ALL, architecture } from '../../testing/configs.js';
import { importConfig } from '../import.js';

const PYTHIA = {
  architectures: ['GPTNeoXForCausalLM'],
  model_type: 'gpt_neox',
  bos_token_id: 0,
  eos_token_id: 0,
  hidden_act: 'gelu',
  hidden_size: 512,
  initializer_range: 0.02,
  intermediate_size: 2048,
  layer_norm_eps: 1e-5,
  max_position_embeddings: 2048,
  num_attention_heads: 8,
  num_hidden_layers: 6,
  rotary_emb_base: 10_000,
  rotary_pct: 0.25,
  tie_word_embeddings: false,
  torch_dtype: 'float16',
  use_cache: true,
  use_parallel_residual: true,
  vocab_size: 50_304,
};

t.test('the MLP reads the layer input, and part of each head is rotated', async (t) => {
  const found = architecture(PYTHIA);
  t.match(found, {
    naming: 'gpt_neox',
    norm: 'layer',
    num_key_value_heads: 8,
    head_dim: 64,
    rotary_dim: 16,
    rope_theta: 10_000,
    qkv_bias: true,
    output_bias: true,
    mlp_bias: true,
    qkv_by_head: true,
    mlp: 'gelu',
    parallel_residual: true,
    embedding_dropout: 0,
    residual_dropout: 0,
  });
  t.strictSame(found.layer_windows, ALL(0, 6));
  const { rotary_pct, rotary_emb_base, ...rest } = PYTHIA;
  const five = { rope_type: 'default', rope_theta: rotary_emb_base, partial_rotary_factor: rotary_pct };
  t.strictSame(architecture({ ...rest, rope_parameters: five }), found);
  const other = { hidden_act: 'gelu_fast', use_parallel_residual: false, attention_bias: false };
  t.match(architecture({ ...PYTHIA, ...other, hidden_dropout: 0.1 }), {
    mlp: 'gelu_tanh',
    parallel_residual: false,
    qkv_bias: false,
    output_bias: false,
    mlp_bias: true,
    embedding_dropout: 0.1,
    residual_dropout: 0.1,
  });
});

t.test('fields of another computation are refused', async (t) => {
  const codesOf = (fields: object) =>
    importConfig({ ...PYTHIA, ...fields }).errors.map(({ pointer, code }) => `${pointer} ${code}`);
  t.strictSame(codesOf({ hidden_act: 'relu' }), ['/hidden_act model_field_unsupported']);
  t.strictSame(codesOf({ rotary_pct: 0.01 }), ['/rotary_pct model_field_unsupported']);
  t.strictSame(codesOf({ hidden_size: 520 }), ['/hidden_size hidden_size_not_divisible']);
  t.strictSame(codesOf({ num_key_value_heads: 2 }), ['/num_key_value_heads unknown_field']);
});
