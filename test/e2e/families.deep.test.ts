/** Jobs of each family train over HTTP with real processes, bit-identical on any number of ranks, and are exported. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { JobSpec, ModelConfig } from '../../contracts/index.js';
import { architectureOf, importConfig, modelParams } from '../../job-document/index.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack, type TestStack } from '../support/stack.js';

const STEPS = 4;
const SIZES = {
  hidden_size: 48,
  intermediate_size: 72,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 256,
};

const FAMILIES: Record<string, { config: ModelConfig; causalLm: string }> = {
  'GPT-2 with dropout in all places': {
    config: { model_type: 'gpt2', n_embd: 48, n_layer: 2, n_head: 4, n_positions: 64, vocab_size: 256 },
    causalLm: 'GPT2LMHeadModel',
  },
  'Llama with biases, rotary positions of Llama 3, tied, vocabulary above 16 bits': {
    config: {
      ...SIZES,
      model_type: 'llama',
      attention_bias: true,
      mlp_bias: true,
      tie_word_embeddings: true,
      vocab_size: 70_000,
      rope_scaling: {
        rope_type: 'llama3',
        factor: 8,
        low_freq_factor: 1,
        high_freq_factor: 4,
        original_max_position_embeddings: 32,
      },
    },
    causalLm: 'LlamaForCausalLM',
  },
  'Mistral with a window': {
    config: { ...SIZES, model_type: 'mistral', sliding_window: 16 },
    causalLm: 'MistralForCausalLM',
  },
  'Qwen2 with a window in one layer, yarn': {
    config: {
      ...SIZES,
      model_type: 'qwen2',
      use_sliding_window: true,
      sliding_window: 24,
      max_window_layers: 1,
      rope_parameters: { rope_type: 'yarn', factor: 2, rope_theta: 1e6 },
    },
    causalLm: 'Qwen2ForCausalLM',
  },
  'Mixtral with the auxiliary loss': {
    config: {
      ...SIZES,
      model_type: 'mixtral',
      num_local_experts: 3,
      output_router_logits: true,
      router_aux_loss_coef: 0.5,
    },
    causalLm: 'MixtralForCausalLM',
  },
  'SmolLM3 with a layer without positions': {
    config: { ...SIZES, model_type: 'smollm3', no_rope_layers: [1, 0] },
    causalLm: 'SmolLM3ForCausalLM',
  },
  'Granite with its factors': {
    config: {
      ...SIZES,
      model_type: 'granite',
      attention_multiplier: 0.125,
      embedding_multiplier: 12,
      residual_multiplier: 0.22,
      logits_scaling: 8,
    },
    causalLm: 'GraniteForCausalLM',
  },
  'OLMo 2': { config: { ...SIZES, model_type: 'olmo2' }, causalLm: 'Olmo2ForCausalLM' },
  'OLMo 3 with yarn in its layer without a window': {
    config: {
      ...SIZES,
      model_type: 'olmo3',
      sliding_window: 16,
      layer_types: ['sliding_attention', 'full_attention'],
      rope_scaling: { rope_type: 'yarn', factor: 2, original_max_position_embeddings: 32 },
    },
    causalLm: 'Olmo3ForCausalLM',
  },
  'Gemma 3 with a layer of each kind': {
    config: {
      ...SIZES,
      model_type: 'gemma3_text',
      head_dim: 16,
      query_pre_attn_scalar: 24,
      sliding_window: 16,
      layer_types: ['sliding_attention', 'full_attention'],
      rope_scaling: { rope_type: 'linear', factor: 8 },
    },
    causalLm: 'Gemma3ForCausalLM',
  },
  'Gemma 2 with soft caps': {
    config: {
      ...SIZES,
      model_type: 'gemma2',
      head_dim: 16,
      query_pre_attn_scalar: 16,
      sliding_window: 16,
      attn_logit_softcapping: 5,
      final_logit_softcapping: 3,
    },
    causalLm: 'Gemma2ForCausalLM',
  },
  'Qwen3-MoE with the auxiliary loss': {
    config: {
      ...SIZES,
      model_type: 'qwen3_moe',
      moe_intermediate_size: 32,
      num_experts: 3,
      num_experts_per_tok: 2,
      norm_topk_prob: true,
      output_router_logits: true,
      router_aux_loss_coef: 0.5,
    },
    causalLm: 'Qwen3MoeForCausalLM',
  },
  'Phi-3 with longrope, a window and dropout of additions to the stream': {
    config: {
      ...SIZES,
      model_type: 'phi3',
      head_dim: 16,
      partial_rotary_factor: 0.5,
      sliding_window: 16,
      resid_pdrop: 0.1,
      original_max_position_embeddings: 32,
      rope_scaling: { type: 'longrope', short_factor: [1, 1.1, 1.2, 1.3], long_factor: [1, 2, 4.5, 9] },
    },
    causalLm: 'Phi3ForCausalLM',
  },
  'GLM-4 with yarn': {
    config: {
      ...SIZES,
      model_type: 'glm4',
      head_dim: 16,
      rope_scaling: { rope_type: 'yarn', factor: 2, original_max_position_embeddings: 32 },
    },
    causalLm: 'Glm4ForCausalLM',
  },
  'Qwen3 with dropout of attention': {
    config: { ...SIZES, model_type: 'qwen3', head_dim: 16, attention_dropout: 0.1 },
    causalLm: 'Qwen3ForCausalLM',
  },
};

let stack: TestStack;
let dataset: string;

/** Digest of the final state, and the files of the export. */
async function trained(config: ModelConfig, ranks: number, train: JobSpec['train'] = {}) {
  const spec = smallJob({ name: `${config.model_type} on ${ranks}`, dataset, steps: STEPS, ranks });
  const { id } = await stack.client.jobs.create({
    ...spec,
    model: { config },
    train: { ...spec.train, ...train },
    export: { dtype: 'fp32' },
  });
  const job = await stack.client.jobs.until(id, () => false);
  if (!job.export) throw new Error(`${job.state} ${JSON.stringify(job.failure)}`);
  const { prefix } = job.export;
  const data = await collect(stack.client.jobs.checkpoints(id));
  return {
    digest: data.find(({ step }) => step === STEPS)?.state_digest,
    file: (name: string) => readFileSync(join(stack.data_dir, 'objects', prefix, name)),
  };
}

function shapesIn(safetensors: Buffer): Record<string, number[]> {
  const { __metadata__: _, ...tensors } = JSON.parse(
    safetensors.subarray(8, 8 + Number(safetensors.readBigUInt64LE(0))).toString('utf8'),
  );
  return Object.fromEntries(
    Object.entries<{ shape: number[] }>(tensors).map(([name, { shape }]) => [name, shape]),
  );
}

t.before(async () => {
  stack = await startStack(t);
  dataset = (await stack.client.datasets.create('openapi', sampleText())).id;
});

for (const [name, { config, causalLm }] of Object.entries(FAMILIES)) {
  t.test(name, async (t) => {
    const [one, three, again] = [
      await trained(config, 1),
      await trained(config, 3),
      await trained(config, 2, { activation_checkpointing: true }),
    ];
    t.ok(one.digest);
    t.equal(three.digest, one.digest, 'the same state on three ranks');
    t.equal(again.digest, one.digest, 'the same state with activation checkpointing');

    const document = JSON.parse(three.file('config.json').toString('utf8'));
    t.match(document, { model_type: config.model_type, architectures: [causalLm] });
    const exported = importConfig(document);
    t.strictSame(exported.errors, [], 'the exported configuration is accepted');
    t.strictSame(
      architectureOf(exported.config!),
      architectureOf(importConfig(config).config!),
      'the exported configuration describes the same model',
    );
    const params = modelParams(architectureOf(exported.config!));
    t.strictSame(
      shapesIn(three.file('model.safetensors')),
      Object.fromEntries(params.map(({ name, shape }) => [name, shape])),
    );
  });
}
