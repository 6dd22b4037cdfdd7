/** Configurations and parameter tables written by transformers (job-document/testing/hf/make.py). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { architectureOf } from './families/families.js';
import { causalLmClass, importConfig } from './import.js';
import { modelParams } from './params.js';

interface Saved {
  config: Record<string, unknown>;
  tensors: Record<string, number[]>;
}

const SAVED: Record<string, Saved> = JSON.parse(
  readFileSync(join(process.cwd(), 'job-document/testing/hf/models.json'), 'utf8'),
);

for (const [name, { config: document, tensors }] of Object.entries(SAVED)) {
  t.test(`${name}, as transformers saves it`, async (t) => {
    const { config, errors } = importConfig(document);
    t.strictSame(errors, []);
    t.strictSame([causalLmClass(config!)], document.architectures);
    const params = modelParams(architectureOf(config!));
    t.strictSame(
      Object.fromEntries(params.map((param) => [param.name, param.shape]).sort()),
      tensors,
      'names and shapes of the parameters',
    );
    t.equal(new Set(params.map((param) => param.name)).size, params.length);
    for (const { name, shape, numel, decays } of params) {
      t.equal(
        numel,
        shape.reduce((product, size) => product * size),
        name,
      );
      t.equal(decays, shape.length === 2, name);
    }
  });

  t.test(`${name}: a configuration with every field is unchanged`, async (t) => {
    const { config } = importConfig(document);
    t.strictSame(importConfig(config!), { config, errors: [], warnings: [] });
  });
}

t.test('parameters are about in the order of the forward pass', async (t) => {
  const names = (name: string) =>
    modelParams(architectureOf(importConfig(SAVED[name]!.config).config!)).map((param) =>
      param.name.replace(/^model\.layers\.0\.|^transformer\.h\.0\./, ''),
    );
  t.strictSame(names('gpt2').slice(0, 14), [
    'transformer.wte.weight',
    'transformer.wpe.weight',
    'ln_1.weight',
    'ln_1.bias',
    'attn.c_attn.weight',
    'attn.c_attn.bias',
    'attn.c_proj.weight',
    'attn.c_proj.bias',
    'ln_2.weight',
    'ln_2.bias',
    'mlp.c_fc.weight',
    'mlp.c_fc.bias',
    'mlp.c_proj.weight',
    'mlp.c_proj.bias',
  ]);
  t.strictSame(names('gpt2').slice(-2), ['transformer.ln_f.weight', 'transformer.ln_f.bias']);
  t.strictSame(names('qwen3_biases').slice(0, 15), [
    'model.embed_tokens.weight',
    'input_layernorm.weight',
    'self_attn.q_proj.weight',
    'self_attn.q_proj.bias',
    'self_attn.k_proj.weight',
    'self_attn.k_proj.bias',
    'self_attn.v_proj.weight',
    'self_attn.v_proj.bias',
    'self_attn.q_norm.weight',
    'self_attn.k_norm.weight',
    'self_attn.o_proj.weight',
    'self_attn.o_proj.bias',
    'post_attention_layernorm.weight',
    'mlp.gate_proj.weight',
    'mlp.up_proj.weight',
  ]);
  t.strictSame(names('mixtral').slice(6, 12), [
    'post_attention_layernorm.weight',
    'block_sparse_moe.gate.weight',
    'block_sparse_moe.experts.0.w1.weight',
    'block_sparse_moe.experts.0.w2.weight',
    'block_sparse_moe.experts.0.w3.weight',
    'block_sparse_moe.experts.1.w1.weight',
  ]);
  t.strictSame(names('mixtral').slice(-2), ['model.norm.weight', 'lm_head.weight']);
});
