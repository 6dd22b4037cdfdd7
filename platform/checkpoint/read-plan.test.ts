import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { openObjectStore } from '../object-store/index.js';
import {
  ADAM_STATES,
  elementValue,
  putTestCheckpoint,
  type TestCheckpointShape,
  testManifest,
  testParams,
} from '../testing/checkpoints.js';
import { STATE_NAMES, statesOf } from './manifest.js';
import { planReads, type WantedSlice } from './read-plan.js';

/** Shapes of a model, states and frozen parameters, cut among the ranks that write it and among those that read it. */
const resharding = fc
  .array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 6 })
  .chain((numels) => {
    const total = numels.reduce((sum, numel) => sum + numel, 0);
    const cuts = fc
      .uniqueArray(fc.integer({ min: 1, max: Math.max(1, total - 1) }), { maxLength: Math.min(5, total - 1) })
      .map((list) => list.sort((a, b) => a - b));
    const states = fc.subarray(STATE_NAMES.slice(1)).map((others) => ['master' as const, ...others]);
    const frozen = fc.subarray(numels.map((_, i) => i));
    return fc.record({ numels: fc.constant(numels), cuts, states, frozen, readers: cuts });
  });

/** What the ranks between the cuts will own, of every state: one list for each rank. */
function slicesOf(shape: TestCheckpointShape, cuts: readonly number[]): WantedSlice[][] {
  const { numels, states = ADAM_STATES } = shape;
  const total = numels.reduce((sum, numel) => sum + numel, 0);
  const borders = [0, ...cuts, total];
  return borders.slice(1).map((last, i) => {
    const first = borders[i] ?? 0;
    return states.flatMap((state) => {
      let offset = 0;
      return testParams(shape).flatMap((param) => {
        const begin = Math.max(first - offset, 0);
        const end = Math.min(last - offset, param.numel);
        offset += param.numel;
        const exists = begin < end && statesOf(param, states).includes(state);
        return exists ? [{ state, param: param.name, begin, end }] : [];
      });
    });
  });
}

t.test('from any cut to any other, every byte of the state is read exactly once', async (t) => {
  fc.assert(
    fc.property(resharding, (shape) => {
      const manifest = testManifest(shape);
      const reads = slicesOf(shape, shape.readers).flatMap((slices) => planReads(manifest, slices));
      for (const { file, tensors } of manifest.shards) {
        const ranges = reads.filter((read) => read.file === file).sort((a, b) => a.byte_begin - b.byte_begin);
        let position = tensors[0]?.byte_begin ?? 0;
        for (const { byte_begin, byte_end } of ranges) {
          if (byte_begin !== position) throw new Error(`${file}: ${byte_begin} follows ${position}`);
          position = byte_end;
        }
        if (position !== (tensors.at(-1)?.byte_end ?? 0)) throw new Error(`${file}: ends at ${position}`);
      }
    }),
    { numRuns: 300 },
  );
  t.pass('holds');
});

t.test('the bytes are those of the wanted elements', async (t) => {
  const objects = await openObjectStore(`file://${join(t.testdir({}), 'objects')}`, { create: true });
  let saves = 0;
  await fc.assert(
    fc.asyncProperty(resharding, async (shape) => {
      saves += 1;
      const directory = `checkpoints/${saves}`;
      const manifest = await putTestCheckpoint(objects, directory, shape);
      for (const slices of slicesOf(shape, shape.readers)) {
        for (const read of planReads(manifest, slices)) {
          const { file, byte_begin: begin, byte_end: end } = read;
          const bytes = await objects.get(`${directory}/${file}`, { begin, end });
          const param = Number(read.param.slice(1));
          for (let i = 0; i < bytes.length / 4; i += 1) {
            const expected = elementValue(shape.numels, read.state, param, read.begin + i);
            if (bytes.readFloatLE(i * 4) !== expected)
              throw new Error(`element ${read.begin + i} of ${read.param}`);
          }
        }
      }
    }),
    { numRuns: 25 },
  );
  t.pass('hold');
});

t.test('reads come in the order of files and bytes', async (t) => {
  const shape = { numels: [10, 10], cuts: [5, 15] };
  const manifest = testManifest(shape);
  const wanted = slicesOf(shape, [])[0] ?? [];
  const reads = planReads(manifest, [...wanted].reverse());
  const keys = reads.map(({ file, byte_begin }) => `${file} ${String(byte_begin).padStart(9, '0')}`);
  t.same(keys, [...keys].sort());
  t.same(planReads(manifest, []), []);
});

t.test('what is not stored exactly once is an error, not a guess', async (t) => {
  const whole: WantedSlice = { state: 'master', param: 'p0', begin: 0, end: 10 };
  const manifest = () => testManifest({ numels: [10], cuts: [4] });
  const incomplete = (message: string) => ({ code: 'checkpoint_incomplete', message });
  t.equal(planReads(manifest(), [whole]).length, 2);
  t.throws(
    () => planReads(manifest(), [{ ...whole, end: 11 }]),
    incomplete('master/p0: element 10 is missing'),
    'beyond the end',
  );
  t.throws(
    () => planReads(manifest(), [{ ...whole, param: 'p9' }]),
    incomplete('master/p9: element 0 is missing'),
    'an unknown parameter',
  );

  const lost = manifest();
  lost.shards.splice(0, 1);
  t.throws(() => planReads(lost, [whole]), incomplete('element 0 is missing'), 'a shard is missing');
  t.equal(
    planReads(lost, [{ ...whole, begin: 4 }]).length,
    1,
    'which does not matter to who needs the others',
  );

  const twice = manifest();
  twice.shards.push({ ...(twice.shards[1] as (typeof twice.shards)[number]), file: 'again' });
  t.throws(() => planReads(twice, [whole]), incomplete('element 4 is there twice'), 'a range is there twice');

  const overlapping = manifest();
  const tensor = overlapping.shards[1]?.tensors.find(({ state }) => state === 'master');
  if (tensor) tensor.element_begin -= 1;
  t.throws(() => planReads(overlapping, [whole]), incomplete('element 3 is there twice'), 'ranges overlap');
});

t.test('elements are found in whatever order shards and tensors are listed', async (t) => {
  const manifest = testManifest({ numels: [90, 12], cuts: [20, 40, 60, 80] });
  const wanted: WantedSlice[] = [{ state: 'exp_avg', param: 'p0', begin: 5, end: 90 }];
  const shards = [...manifest.shards]
    .reverse()
    .map((shard) => ({ ...shard, tensors: [...shard.tensors].reverse() }));
  t.strictSame(planReads({ ...manifest, shards }, wanted), planReads(manifest, wanted));
});
