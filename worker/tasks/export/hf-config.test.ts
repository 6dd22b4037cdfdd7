/** Tests of the config.json of exports: Hugging Face readers distinguish 1.0 from 1. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { type ModelConfig, modelKey } from '../../../contracts/index.js';
import { parseExactly, stringifyExactly } from '../../../contracts/jsonl/exact-json.js';
import { MODEL_TYPES } from '../../../job-document/index.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { projectRoot } from '../../../platform/process/root.js';
import { testSpec } from '../../testing/start-message.js';
import { hfConfig } from './hf-config.js';
import { sourceConfig } from './model-source.js';

const MODEL = 'mdl_01J00000000000000000000000';
/** Configurations written by transformers, at least one per family. */
const MODELS = readFileSync(join(projectRoot(), 'job-document/testing/hf/models.json'), 'utf8');
const CONFIGS = [...MODELS.matchAll(/"config": (\{[\s\S]*?\n\})/g)].map(([, text = '']) =>
  // Vocabulary of one id per byte, for the spec of the job.
  text.replace('"vocab_size": 96', '"vocab_size": 256'),
);

/** Returns the document with "int" or "float" for each number, as Python types it. */
function typesOf(json: string): Record<string, unknown> {
  const number = /"[^"]*"|-?\d[\d.eE+-]*/g;
  return JSON.parse(
    json.replace(number, (token) =>
      token.startsWith('"') ? token : JSON.stringify(/[.eE]/.test(token) ? 'float' : 'int'),
    ),
  );
}

const withoutDtype = ({ dtype: _, torch_dtype: __, ...rest }: Record<string, unknown>) => rest;

t.test('an uploaded configuration is exported with unchanged numbers', async (t) => {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  const families = new Set<unknown>();
  // Whole-numbered floats in fields whose type transformers checks.
  const whole = (text: string) =>
    text
      .replace(/"(initializer_range|router_aux_loss_coef)": [\d.e-]+/g, '"$1": 1.0')
      .replace('{', '{"attention_dropout": 0.0,\n');
  const edited = CONFIGS.map((text) => whole(text.replace(/ "attention_dropout": [\d.]+,\n/, '')));
  const gpt2 = (text: string) => text.replace('{"attention_dropout": 0.0,\n', '{');
  for (const text of [...CONFIGS, ...edited.map((one) => (one.includes('"gpt2"') ? gpt2(one) : one))]) {
    const config = JSON.parse(text) as ModelConfig;
    families.add(config.model_type);
    await objects.put(`${modelKey(MODEL)}/config.json`, Buffer.from(text));
    const spec = testSpec({ config, init_from: { model: MODEL } });
    const source = await sourceConfig(objects, modelKey(MODEL), spec);
    const exported = stringifyExactly(hfConfig(spec, 'bf16', source));
    t.strictSame(withoutDtype(typesOf(exported)), withoutDtype(typesOf(text)), `${config.model_type}: types`);
    t.strictSame(withoutDtype(JSON.parse(exported)), withoutDtype(JSON.parse(text)), 'values');
  }
  t.strictSame([...families].sort(), [...MODEL_TYPES].sort());
  t.ok(edited.some((text) => text.includes('"router_aux_loss_coef": 1.0')));
});

t.test('a generated configuration has floats in the float fields of its family', async (t) => {
  const mixtral = JSON.parse(CONFIGS.find((text) => text.includes('"mixtral"')) ?? '{}') as object;
  const config = {
    ...mixtral,
    initializer_range: 1,
    router_aux_loss_coef: 0,
    attention_dropout: 0,
    rope_parameters: {
      rope_type: 'yarn',
      rope_theta: 10_000,
      factor: 4,
      original_max_position_embeddings: 16,
    },
  } as unknown as ModelConfig;
  const types = typesOf(stringifyExactly(hfConfig(testSpec({ config }), 'bf16')));
  t.match(types, {
    hidden_size: 'int',
    num_local_experts: 'int',
    initializer_range: 'float',
    router_aux_loss_coef: 'float',
    attention_dropout: 'float',
    rms_norm_eps: 'float',
    rope_theta: 'float',
    rope_scaling: { factor: 'float', beta_fast: 'float', original_max_position_embeddings: 'int' },
  });
});

t.test('every number keeps its format, and so do strings that look like numbers', async (t) => {
  const json =
    '{\n  "a": [\n    1.0,\n    -0.0,\n    1e-06,\n    10000000000000000001,\n    1E5\n  ],\n  "1.0": "\\"2.0\\" 3.0"\n}';
  t.equal(stringifyExactly(parseExactly(json)), json);
});
