import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import type { Model } from '../../../contracts/index.js';
import {
  modelFolder,
  safetensorsFile,
  storeModel,
  testData,
  testModel,
} from '../../../formats/testing/models.js';
import { modelParams } from '../../../job-document/index.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { fakeCore } from '../../testing/fake-core.js';
import { openWeights, shapeOf } from './served-source.js';

const ONCE = { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 };
const LORA: NonNullable<Model['adapter']> = {
  type: 'lora',
  rank: 4,
  alpha: 8,
  rank_stabilized: false,
  dropout: 0,
  target_modules: ['q_proj'],
  modules_to_save: [],
  init: 'kaiming_uniform',
};

/** An adapter over a model; `tied`: the model has no `lm_head` of its own. */
function sourceOf(adapter: Partial<typeof LORA> = {}, tied = false) {
  const baseModel = testModel('mdl_01J00000000000000000000001');
  baseModel.config = { ...baseModel.config, tie_word_embeddings: tied };
  const model: Model = {
    ...baseModel,
    id: 'mdl_01J00000000000000000000002',
    base: baseModel.id,
    adapter: { ...LORA, ...adapter },
  };
  return { model, base_model: baseModel };
}

/** Stores both models, and returns the names of the parameters that are read from the adapter's file. */
async function readFromAdapter(t: Test, source: ReturnType<typeof sourceOf>) {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  const params = modelParams(shapeOf(source).architecture);
  const own = params
    .filter(({ frozen }) => !frozen)
    .map(({ name, shape, numel }) => ({ name, shape, dtype: 'F32' as const, data: Buffer.alloc(4 * numel) }));
  await storeModel(
    objects,
    source.base_model.id,
    modelFolder({ config: source.base_model.config, dtype: 'F32' }),
  );
  await storeModel(objects, source.model.id, new Map([['adapter_model.safetensors', safetensorsFile(own)]]));
  const read = await openWeights(objects, fakeCore(), source, ONCE);
  const found: string[] = [];
  for (const { name, shape, numel } of params) {
    const pieces: Uint8Array[] = [];
    for await (const { bytes } of read(name, numel)) pieces.push(bytes);
    const values = Buffer.concat(pieces);
    if (values.equals(Buffer.alloc(4 * numel))) found.push(name);
    else t.ok(values.equals(testData(name, shape, 'F32')), `${name} of the base`);
  }
  return { found, own: own.map(({ name }) => name) };
}

t.test('what an adapter trained is read from the adapter, all else from its base', async (t) => {
  for (const [adapter, modules, tied] of [
    [{}, [], false],
    [{ modules_to_save: ['lm_head'] }, ['lm_head'], false],
    [{ modules_to_save: ['embed_tokens'] }, ['model.embed_tokens'], true],
    [{ modules_to_save: ['norm', 'o_proj'] }, ['model.norm', 'model.layers.1.self_attn.o_proj'], false],
    [{ type: 'dora', modules_to_save: ['lm_head'] }, ['lm_head'], false],
  ] as const) {
    const { found, own } = await readFromAdapter(t, sourceOf(adapter as Partial<typeof LORA>, tied));
    t.strictSame(found, own, JSON.stringify(adapter));
    for (const module of modules) t.ok(found.includes(`${module}.weight`), module);
  }
});

t.test(
  'an uploaded model is answered in the precision of its weights, an adapter in that of its base',
  async (t) => {
    const precision = (dtypes: Model['dtypes'], base: Model['dtypes'] | null = null) => {
      const modelWith = (given: Model['dtypes']) => ({ ...testModel('mdl_1'), dtypes: given });
      return shapeOf({ model: modelWith(dtypes), base_model: base && modelWith(base) }).precision;
    };
    t.equal(precision(['fp32']), 'fp32');
    t.equal(precision(['fp16']), 'fp16');
    t.equal(precision(['bf16']), 'bf16');
    t.equal(precision(['fp16', 'fp32']), 'fp16');
    t.equal(precision(['bf16', 'fp32']), 'bf16');
    t.equal(precision(['bf16', 'fp16']), 'fp32');
    t.equal(precision(['fp32'], ['bf16']), 'bf16');
    t.equal(precision(['bf16'], ['fp32']), 'fp32');
  },
);
