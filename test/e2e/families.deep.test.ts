/** Jobs of each family train over HTTP with real processes, bit-identical on any number of ranks, and are exported. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { JobSpec, ModelConfig } from '../../contracts/index.js';
import { modelFolder, tarOf, tensorsOf } from '../../formats/testing/models.js';
import {
  architectureOf,
  causalLmClass,
  importConfig,
  MODEL_TYPES,
  modelParams,
} from '../../job-document/index.js';
import { familyModels, firstModel } from '../support/families.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack, type TestStack } from '../support/stack.js';

const STEPS = 4;
const MODELS: Record<string, ModelConfig> = {
  'llama, vocabulary above 16 bits': firstModel('llama', { vocab_size: 70_000 }),
  ...Object.assign({}, ...MODEL_TYPES.map((type) => familyModels(type, { vocab_size: 256 }))),
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

for (const [name, config] of Object.entries(MODELS)) {
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
    const exported = importConfig(document);
    t.match(document, { model_type: config.model_type, architectures: [causalLmClass(exported.config!)] });
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

for (const type of MODEL_TYPES)
  t.test(`${type}: tensors of an upload come back byte for byte`, async (t) => {
    const config = firstModel(type, { vocab_size: 256 });
    const folder = modelFolder({ config });
    const { id: model } = await stack.client.models.create(type, await tarOf(folder));
    const spec = smallJob({ name: `${type} again`, dataset, steps: 1, ranks: 2 });
    const { id } = await stack.client.jobs.create({
      ...spec,
      model: { init_from: { model } },
      train: { ...spec.train, lr_schedule: { type: 'constant' }, overrides: [{ step: 0, lr: 0 }] },
    });
    const { export: made, ...job } = await stack.client.jobs.until(id, () => false);
    if (!made) throw new Error(`${job.state} ${JSON.stringify(job.failure)}`);
    const file = readFileSync(join(stack.data_dir, 'objects', made.prefix, 'model.safetensors'));
    t.strictSame(tensorsOf([file]), tensorsOf([folder.get('model.safetensors')!]));
  });
