/** The tables of parameters in TypeScript and in the native core are equal, for each family and option. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Architecture } from '../../contracts/architecture.js';
import { architectureOf, importConfig, layerModules, modelParams } from '../../job-document/index.js';
import { paramTable } from '../../native/js/index.js';

/** Configurations of every family, as transformers writes them. */
const MODELS: Record<string, { config: Record<string, unknown> }> = JSON.parse(
  readFileSync(join(process.cwd(), 'job-document/testing/hf/models.json'), 'utf8'),
);

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

for (const [name, { config }] of Object.entries(MODELS)) {
  const architecture = architectureOf(importConfig(config).config!);
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
