import t from 'tap';
import { architectureOf, importConfig, modelParams, trainedArchitecture } from '../../job-document/index.js';
import { plannedTensors } from './tensors.js';

const SIZES = {
  hidden_size: 64,
  intermediate_size: 48,
  num_hidden_layers: 1,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 256,
};
const GPT2 = {
  model_type: 'gpt2',
  n_embd: 64,
  n_layer: 1,
  n_head: 4,
  n_inner: 96,
  n_positions: 32,
  vocab_size: 256,
};

function configOf(fields: Record<string, unknown>) {
  const { config, errors } = importConfig(fields);
  if (config === null) throw new Error(JSON.stringify(errors));
  return config;
}

const shown = (fields: Record<string, unknown>, type: 'fp32' | 'q8_0' = 'q8_0') => {
  const config = configOf(fields);
  return plannedTensors(config, modelParams(architectureOf(config)), type).map(
    ({ name, shape, type, layout }) =>
      `${name} ${shape.join('x')} ${type}${layout === 'rows' ? '' : ` ${layout}`}`,
  );
};

t.test('names, shapes, formats and layouts of llama', async (t) => {
  t.same(shown({ ...SIZES, model_type: 'llama', attention_bias: true }), [
    'token_embd.weight 256x64 Q8_0',
    'blk.0.attn_norm.weight 64 F32',
    'blk.0.attn_q.weight 64x64 Q8_0 paired',
    'blk.0.attn_q.bias 64 F32 paired',
    'blk.0.attn_k.weight 32x64 Q8_0 paired',
    'blk.0.attn_k.bias 32 F32 paired',
    'blk.0.attn_v.weight 32x64 Q8_0',
    'blk.0.attn_v.bias 32 F32',
    'blk.0.attn_output.weight 64x64 Q8_0',
    'blk.0.attn_output.bias 64 F32',
    'blk.0.ffn_norm.weight 64 F32',
    'blk.0.ffn_gate.weight 48x64 Q8_0',
    'blk.0.ffn_up.weight 48x64 Q8_0',
    // Rows of 48 elements are no whole number of blocks.
    'blk.0.ffn_down.weight 64x48 F16',
    'output_norm.weight 64 F32',
    'output.weight 256x64 Q8_0',
  ]);
});

t.test('those of gpt2, qwen3 and mixtral', async (t) => {
  t.same(shown(GPT2).slice(0, 6), [
    'token_embd.weight 256x64 Q8_0',
    'position_embd.weight 32x64 F32',
    'blk.0.attn_norm.weight 64 F32',
    'blk.0.attn_norm.bias 64 F32',
    'blk.0.attn_qkv.weight 192x64 Q8_0 transposed',
    'blk.0.attn_qkv.bias 192 F32',
  ]);
  t.ok(shown({ ...SIZES, model_type: 'qwen3', head_dim: 32 }).includes('blk.0.attn_q_norm.weight 32 F32'));
  t.notOk(shown({ ...SIZES, model_type: 'qwen2' }).some((line) => line.endsWith('paired')));
  const mixtral = shown({ ...SIZES, model_type: 'mixtral', num_local_experts: 3 }, 'fp32');
  t.match(
    mixtral.join('\n'),
    /ffn_gate_inp.weight 3x64 F32\n.*ffn_gate_exps.weight 3x48x64 F32\n.*ffn_down_exps/,
  );
  const qwen2 = shown({ ...SIZES, model_type: 'qwen2_moe', shared_expert_intermediate_size: 32 }, 'fp32');
  t.match(
    qwen2.join('\n'),
    /ffn_gate_shexp.weight 32x64 F32\n.*ffn_up_shexp.weight 32x64 F32\n.*ffn_down_shexp.weight 64x32 F32\n.*ffn_gate_inp_shexp.weight 64 F32\n/,
  );
});

t.test('factors of adapters', async (t) => {
  const adapter = {
    type: 'lora',
    rank: 4,
    alpha: 8,
    rank_stabilized: false,
    dropout: 0,
    init: 'gaussian',
    target_modules: ['q_proj', 'w1'],
    modules_to_save: [],
  } as const;
  const config = configOf({ ...SIZES, model_type: 'mixtral', num_local_experts: 2 });
  const train = { adapter: { ...adapter, target_modules: [...adapter.target_modules], modules_to_save: [] } };
  const params = modelParams(trainedArchitecture({ model: { config }, train }));
  const factors = plannedTensors(
    config,
    params.filter(({ frozen }) => !frozen),
    'bf16',
  );
  t.same(
    factors.map(({ name, shape, layout }) => [name, shape, layout]),
    [
      ['blk.0.attn_q.weight.lora_a', [4, 64], 'rows'],
      ['blk.0.attn_q.weight.lora_b', [64, 4], 'paired'],
      ['blk.0.ffn_gate_exps.weight.lora_a', [2, 4, 64], 'rows'],
      ['blk.0.ffn_gate_exps.weight.lora_b', [2, 48, 4], 'rows'],
    ],
  );
});
