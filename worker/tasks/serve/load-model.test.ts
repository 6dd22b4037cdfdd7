import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import {
  modelFolder,
  storeModel,
  TINY_CONFIG,
  testData,
  testModel,
} from '../../../formats/testing/models.js';
import { modelParams } from '../../../job-document/index.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import type { CoreEngine, ParamInfo } from '../../shared/native/adapter.js';
import { fakeCore } from '../../testing/fake-core.js';
import { loadModel, loadVariant, type ServeTask } from './load-model.js';
import { shapeOf } from './served-source.js';

const ONCE = { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 };
const ID = 'mdl_01J00000000000000000000000';
const LORA = {
  type: 'lora' as const,
  rank: 4,
  alpha: 8,
  rank_stabilized: false,
  dropout: 0,
  modules_to_save: [],
  init: 'kaiming_uniform' as const,
  target_modules: ['q_proj'],
};
const GPU = { free_bytes: 50, total_bytes: 100 };

/** Loads a model whose engine needs so many bytes; an error takes the place of the engine. */
async function load(t: Test, gpu: ServeTask['gpu'], needed: number | Error) {
  const closed: string[] = [];
  const devices: string[] = [];
  const core = fakeCore();
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  await storeModel(objects, ID, new Map());
  const task = {
    weights: { model: testModel(ID), base_model: null },
    threads: 1,
    gpu,
    retry: ONCE,
  } as unknown as ServeTask;
  const createEngine: typeof core.createEngine = (model, options) => {
    devices.push(options.device);
    if (typeof needed !== 'number') throw needed;
    const engine: CoreEngine = core.createEngine(model, options);
    return Object.assign(engine, { numBytes: needed, close: () => closed.push('closed') });
  };
  const allocated: number[] = [];
  const loading = loadModel(objects, { ...core, createEngine, paramTable: () => [] }, task, (bytes) =>
    allocated.push(bytes),
  );
  return { loading, closed, devices, allocated };
}

t.test('a model is loaded where it fits', async (t) => {
  const { loading, devices, closed, allocated } = await load(t, GPU, 50);
  t.match(await loading, { numBytes: 50 });
  t.strictSame(allocated, [50]);
  t.strictSame([devices, closed], [['cuda'], []]);
  const onCpu = await load(t, null, 1);
  await onCpu.loading;
  t.strictSame(onCpu.devices, ['cpu']);
});

t.test(
  'parameters of any size are set in pieces, and no sequence is longer than 131,072 tokens',
  async (t) => {
    const config = { ...TINY_CONFIG, vocab_size: 50_000, max_position_embeddings: 1_000_000 };
    const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
    await storeModel(objects, ID, modelFolder({ config, dtype: 'F32' }));
    const core = fakeCore();
    const params = modelParams(
      shapeOf({ model: { ...testModel(ID), config }, base_model: null }).architecture,
    );
    const table = params.map((param, index) => ({ ...param, index }) as unknown as ParamInfo);
    const set = new Map<number, Uint8Array[]>();
    const lengths: number[] = [];
    const createEngine: typeof core.createEngine = (model, options) => {
      lengths.push(options.max_length, options.cache_tokens);
      const setParam: CoreEngine['setParam'] = (index, begin, _, fp32) => {
        const before = set.get(index) ?? [];
        t.equal(
          before.reduce((sum, { length }) => sum + length, 0),
          4 * begin,
        );
        set.set(index, [...before, Buffer.from(fp32)]);
      };
      return Object.assign(core.createEngine(model, options), { setParam });
    };
    const task = {
      weights: { model: { ...testModel(ID), config }, base_model: null },
      threads: 1,
      gpu: null,
      retry: ONCE,
    };
    const recording = { ...core, createEngine, paramTable: () => table };
    await loadModel(objects, recording, task as unknown as ServeTask, () => undefined);
    for (const { index, name, shape } of table)
      t.ok(Buffer.concat(set.get(index) ?? []).equals(testData(name, shape, 'F32')), name);
    t.ok((set.get(0)?.length ?? 0) > 1, 'the embedding has more bytes than a piece');
    t.equal(lengths[0], 131_072);
    t.ok((lengths[1] ?? 0) > 131_072, 'although more tokens have room in the cache');
  },
);

t.test('a CPU quantizes the base that was quantized, a GPU gets what is restored of it', async (t) => {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  await storeModel(objects, ID, modelFolder({ config: TINY_CONFIG, dtype: 'F32' }));
  const base = testModel(ID);
  const { architecture } = shapeOf({ model: base, base_model: null });
  const adapted = shapeOf({ model: { ...base, adapter: LORA }, base_model: base }).architecture;
  const quantized = { ...adapted, quantization: 'int8' as const };
  const weights = { base: { model: ID }, architecture: quantized, precision: 'fp32' as const };
  for (const gpu of [null, { free_bytes: 1e9, total_bytes: 1e9 }]) {
    const core = fakeCore();
    const engines: unknown[] = [];
    let numRestored = 0;
    const quantizedValues: typeof core.quantizedValues = (_, fp32) => {
      numRestored += 1;
      return fp32;
    };
    const createEngine: typeof core.createEngine = (model, options) => {
      engines.push([model.quantization, model.adapter]);
      return core.createEngine(model, options);
    };
    const params = modelParams(architecture);
    const paramTable = () => params.map((param, index) => ({ ...param, index }) as unknown as ParamInfo);
    const task = { weights, threads: 1, gpu, retry: ONCE } as unknown as ServeTask;
    await loadModel(objects, { ...core, createEngine, paramTable, quantizedValues }, task, () => undefined);
    t.strictSame(engines, [[gpu === null ? 'int8' : null, null]]);
    const matrices = modelParams(quantized).filter((param) => param.quantization !== null);
    t.ok(matrices.length > 0);
    t.equal(numRestored, gpu === null ? 0 : matrices.length);
  }
});

t.test('nothing is read any more when an engine has refused a parameter', async (t) => {
  const config = { ...TINY_CONFIG, vocab_size: 50_000 };
  const model = { ...testModel(ID), config };
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  await storeModel(objects, ID, modelFolder({ config, dtype: 'F32' }));
  let [begun, ended, atRefusal] = [0, 0, 0];
  const get: typeof objects.get = async (...args) => {
    begun++;
    await sleep(20);
    return objects.get(...args).finally(() => ended++);
  };
  const core = fakeCore();
  const params = modelParams(shapeOf({ model, base_model: null }).architecture);
  const paramTable = () => params.map((param, index) => ({ ...param, index }) as unknown as ParamInfo);
  const refused = new Error('refused');
  const createEngine: typeof core.createEngine = (model, options) =>
    Object.assign(core.createEngine(model, options), {
      setParam: () => {
        atRefusal = ended;
        throw refused;
      },
    });
  const task = { weights: { model, base_model: null }, threads: 1, gpu: null, retry: ONCE };
  const slow = Object.assign(Object.create(objects), { get });
  const loading = loadModel(
    slow,
    { ...core, createEngine, paramTable },
    task as unknown as ServeTask,
    () => undefined,
  );
  await t.rejects(loading, refused);
  t.ok(begun > atRefusal, 'the next piece was being read');
  t.equal(ended, begun);
});

t.test('a model without free memory may fit later; one that is too large never fits', async (t) => {
  const oom = Object.assign(new Error('64 bytes on cuda:0'), { code: 'out_of_memory' });
  for (const [gpu, needed, code, message] of [
    [GPU, 51, 'model_memory_in_use', /needs 1 MiB, and the worker's GPU has 1 MiB left/],
    [GPU, 101, 'model_does_not_fit', /use a worker with more memory/],
    [GPU, oom, 'model_memory_in_use', /64 bytes on cuda:0/],
    [null, 2 ** 60, 'model_does_not_fit', /the worker has \d+ MiB for models/],
  ] as const) {
    const { loading, closed } = await load(t, gpu, needed);
    await t.rejects(loading, { code, message });
    t.equal(closed.length, needed === oom ? 0 : 1);
  }
  const other = new Error('a bug');
  await t.rejects((await load(t, null, other)).loading, other);
});

t.test('an adapter that the device has no memory for is refused alone', async (t) => {
  const core = fakeCore();
  const engine = core.createEngine({} as never, {} as never);
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  await storeModel(objects, ID, modelFolder());
  const source = { model: { ...testModel(ID), base: ID, adapter: LORA }, base_model: testModel(ID) };
  const load = () =>
    loadVariant(objects, { ...core, paramTable: () => [] }, engine, {
      source,
      is_adapter: true,
      retry: ONCE,
    });
  const { addAdapter } = engine;
  engine.addAdapter = async () => {
    throw Object.assign(new Error('64 bytes on cuda:0'), { code: 'out_of_memory' });
  };
  await t.rejects(load(), { code: 'model_memory_in_use', message: '64 bytes on cuda:0' });
  engine.addAdapter = addAdapter;
  const { adapter, bytes, prompts } = await load();
  t.strictSame([adapter, bytes], [1, 1], 'it may be loaded again');
  await prompts.close();
});
