import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import type { StateName } from '../../../contracts/rank-protocol.js';
import { sumDigests } from '../../../formats/checkpoint/digest.js';
import { CHUNK_BYTES } from '../../../formats/checkpoint/manifest.js';
import { ChunkChecksums } from '../../../formats/checkpoint/verify.js';
import {
  encodeWeights,
  type ModelWeights,
  parseWeights,
  type WeightDtype,
} from '../../../formats/models/weights.js';
import { testData } from '../../../formats/testing/models.js';
import { type ObjectStore, openObjectStore } from '../../../platform/object-store/index.js';
import type { RankTrainer } from '../../shared/native/adapter.js';
import { verifyLoadedRanges } from '../../shared/verify-load.js';
import { widenToFp32 } from '../../shared/widen.js';
import { fakeCore } from '../../testing/fake-core.js';
import { startMessage, testSpec } from '../../testing/start-message.js';
import { positionAfterRestore } from '../position.js';
import { trainerConfig } from '../trainer-config.js';
import { loadModel } from './load-model.js';

const directory = 'models/mdl_test';
const source = { kind: 'model' as const, adapters_only: false, directory, restore: 'weights' as const };
const retry = { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 };
const core = fakeCore();
const spec = testSpec();
const params = core
  .paramTable(trainerConfig(startMessage({ spec })).model)
  .map((param) => ({ ...param, frozen: false, base: false, expert_set: null }));
const state = { params, states: ['master', 'exp_avg', 'exp_avg_sq'] as const, num_base: params.length };

/**
 * Stores a model with the fake core's parameters, in two files. In the first, elements cross the border of two checksum
 * chunks, and no tensor is aligned to its element size.
 */
async function store(
  t: Test,
  dtypes: readonly WeightDtype[],
): Promise<{ objects: ObjectStore; weights: ModelWeights }> {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  const contents = [Buffer.alloc(CHUNK_BYTES + 1000), Buffer.alloc(2000)];
  const ends = [CHUNK_BYTES - 101, 11];
  const files = contents.map((content, i) => ({
    file: `model-${i}.safetensors`,
    bytes: content.length,
    crc32c: '',
    tensors: [] as ModelWeights['files'][number]['tensors'],
  }));
  for (const [i, { name, shape }] of params.entries()) {
    const dtype = dtypes[i % dtypes.length] as WeightDtype;
    const data = testData(name, shape, dtype);
    const [file, byteBegin] = [i % 2, ends[i % 2] as number];
    data.copy(contents[file] as Buffer, byteBegin);
    ends[file] = byteBegin + data.length;
    files[file]?.tensors.push({
      param: name,
      dtype,
      shape,
      byte_begin: byteBegin,
      byte_end: byteBegin + data.length,
    });
  }
  for (const [i, content] of contents.entries()) {
    const chunks = new ChunkChecksums();
    chunks.add(content);
    if (files[i]) files[i].crc32c = chunks.finish();
    await objects.put(`${directory}/model-${i}.safetensors`, content);
  }
  const encoded = encodeWeights(files);
  await objects.put(`${directory}/WEIGHTS.json`, encoded);
  return { objects, weights: parseWeights(encoded) };
}

async function load(objects: ObjectStore, worldSize: number) {
  const ranks: RankTrainer[] = [];
  const relay = (key: string, value: Uint8Array) => {
    for (const trainer of ranks) trainer.deliver(key, value);
  };
  for (let rank = 0; rank < worldSize; rank++)
    ranks.push(core.createTrainer(trainerConfig(startMessage({ rank, world_size: worldSize, spec })), relay));
  const ranges = (
    await Promise.all(ranks.map((trainer) => loadModel({ objects, source, trainer, state, retry })))
  ).flatMap((loaded) => loaded.ranges);
  const at = { ...positionAfterRestore(null, spec.train.loss_scale), restore: 'weights' as const };
  await Promise.all(ranks.map((trainer) => trainer.finishLoad(at)));
  const slices = (await Promise.all(ranks.map((trainer) => trainer.snapshot()))).flatMap(
    (shot) => shot.slices,
  );
  return { ranges, slices, digest: sumDigests(ranks.map((trainer) => trainer.digestPart())) };
}

for (const dtypes of [['F32'], ['BF16'], ['F16'], ['BF16', 'F32', 'F16']] as const) {
  t.test(`any number of ranks loads the same values, each byte once: ${dtypes.join(' and ')}`, async (t) => {
    const { objects, weights } = await store(t, dtypes);
    const bytes = weights.files
      .flatMap(({ tensors }) => tensors)
      .reduce((sum, { byte_begin, byte_end }) => sum + byte_end - byte_begin, 0);
    const digests = new Set<string>();
    for (const worldSize of [1, 2, 3, 4]) {
      const { ranges, slices, digest } = await load(objects, worldSize);
      digests.add(digest);
      t.equal(
        ranges.reduce((sum, { begin, end }) => sum + end - begin, 0),
        bytes,
      );
      await t.resolves(verifyLoadedRanges(objects, directory, weights.files, ranges));
      const wrong = slices.filter(({ state, param, begin, end, data }) => {
        const { name, shape } = params[param]!;
        const dtype = dtypes[param % dtypes.length]!;
        const expected = widenToFp32(dtype, testData(name, shape, dtype)).subarray(begin * 4, end * 4);
        return state === 'master' && !Buffer.from(data).equals(expected);
      });
      t.strictSame(wrong, []);
    }
    t.equal(digests.size, 1);
  });
}

t.test('a full restore begins the average of trained parameters with the weights', async (t) => {
  const { objects } = await store(t, ['F32']);
  const loaded: [state: StateName, param: number, bytes: number][] = [];
  const trainer: Pick<RankTrainer, 'slices' | 'load'> = {
    slices: () => params.map(({ index: param, numel }) => ({ param, begin: 0, end: numel })),
    load: (stateName, param, _, { length }) => void loaded.push([stateName, param, length]),
  };
  const options = {
    objects,
    trainer,
    state: {
      ...state,
      params: params.map((param) => ({ ...param, frozen: param.index === 1 })),
      states: ['master', 'ema'] as const,
    },
    retry,
  };
  const numBytes = (state: StateName, index: number) =>
    loaded.reduce(
      (sum, [stateName, param, bytes]) => sum + (stateName === state && param === index ? bytes : 0),
      0,
    );
  await loadModel({ ...options, source: { ...source, restore: 'full' } });
  for (const { index, numel } of params) {
    t.equal(numBytes('master', index), 4 * numel);
    t.equal(numBytes('ema', index), index === 1 ? 0 : 4 * numel);
  }
  loaded.length = 0;
  await loadModel({ ...options, source });
  t.notOk(loaded.some(([state]) => state === 'ema'));
});

t.test('a changed byte is detected; missing data is an error', async (t) => {
  const { objects, weights } = await store(t, ['BF16']);
  const key = `${directory}/model-0.safetensors`;
  const good = await objects.get(key);
  for (const at of [0, CHUNK_BYTES - 100, CHUNK_BYTES, CHUNK_BYTES + 20]) {
    const bad = Buffer.from(good);
    bad[at]! ^= 4;
    await objects.put(key, bad);
    const { ranges } = await load(objects, 3);
    await t.rejects(verifyLoadedRanges(objects, directory, weights.files, ranges), { code: 'shard_corrupt' });
  }
  await objects.put(key, good.subarray(0, CHUNK_BYTES));
  await t.rejects(load(objects, 2), { code: 'invalid_range' });
  await objects.delete([key]);
  await t.rejects(load(objects, 2), { code: 'object_not_found' });
});

t.test('a model with other parameters is refused before its weights are read', async (t) => {
  const { objects, weights } = await store(t, ['F32']);
  const put = (change: (files: ModelWeights['files']) => void) => {
    const { files } = structuredClone(weights);
    change(files);
    return objects.put(`${directory}/WEIGHTS.json`, encodeWeights(files));
  };
  const cases: [RegExp, (files: ModelWeights['files']) => void][] = [
    [/lm_head.weight .* is missing there/, (files) => files[0]!.tensors.pop()],
    [
      /model.norm.weight has shape \[10\] here and \[2,5\] there/,
      (files) => (files[1]!.tensors[0]!.shape = [2, 5]),
    ],
    [
      /its other does not exist/,
      (files) => files[1]!.tensors.push({ ...files[1]!.tensors[0]!, param: 'other' }),
    ],
    [/model.norm.weight is where it can't be/, (files) => (files[1]!.tensors[0]!.byte_end += 4)],
    [/malformed: \/files\/0\/file/, (files) => (files[0]!.file = '../elsewhere')],
  ];
  for (const [message, change] of cases) {
    await put(change);
    await t.rejects(load(objects, 1), { code: 'model_corrupt', message });
  }
  await objects.put(`${directory}/WEIGHTS.json`, Buffer.from('{"format_ver'));
  await t.rejects(load(objects, 1), { code: 'model_corrupt', message: /not JSON/ });
});
