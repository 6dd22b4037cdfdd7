/** Fields of families with a mixture of experts. */
import t from 'tap';
import { ALL, architecture, SMALL } from '../testing/configs.js';

t.test('Qwen2-MoE: an expert of all tokens beside those of the router', async (t) => {
  // Fields of Qwen1.5-MoE-A2.7B that are not its sizes; transformers 5 writes a window of 0.
  const published = {
    model_type: 'qwen2_moe',
    decoder_sparse_step: 1,
    max_window_layers: 3,
    moe_intermediate_size: 1408,
    norm_topk_prob: false,
    num_experts: 60,
    num_experts_per_tok: 4,
    shared_expert_intermediate_size: 5632,
    sliding_window: 0,
    use_sliding_window: false,
  };
  const found = architecture({ ...SMALL, ...published });
  t.match(found, {
    naming: 'qwen2_moe',
    intermediate_size: 1408,
    shared_expert_size: 5632,
    num_experts: 60,
    experts_per_token: 4,
    norm_topk_prob: false,
    qkv_bias: true,
    output_bias: false,
  });
  t.strictSame(found.layer_windows, ALL(0, 4));
  const window = { use_sliding_window: true, sliding_window: 7, norm_topk_prob: true, qkv_bias: false };
  const other = architecture({ ...SMALL, ...published, ...window });
  t.match(other, { qkv_bias: false, norm_topk_prob: true, layer_windows: [7, 0, 7, 0] });
});

t.test('Qwen3-MoE: the width of its experts, and normed heads', async (t) => {
  const experts = {
    moe_intermediate_size: 96,
    num_experts: 16,
    num_experts_per_tok: 4,
    norm_topk_prob: true,
  };
  const fields = { decoder_sparse_step: 1, mlp_only_layers: [], max_window_layers: 48, sliding_window: null };
  const found = architecture({ model_type: 'qwen3_moe', ...SMALL, ...experts, ...fields });
  t.match(found, {
    naming: 'qwen3_moe',
    intermediate_size: 96,
    num_experts: 16,
    experts_per_token: 4,
    norm_topk_prob: true,
    qk_norm: true,
  });
  t.strictSame(found.layer_windows, ALL(0, 4));
});
