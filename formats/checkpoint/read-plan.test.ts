import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { STATE_NAMES } from '../../contracts/state-records.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import {
  ADAM_STATES,
  elementValue,
  putTestCheckpoint,
  type TestCheckpointShape,
  testManifest,
  testParams,
} from '../testing/checkpoints.js';
import { encodeManifest, parseManifest } from './manifest.js';
import { type PlannedRead, planReads, type Wanted, type WantedSlice } from './read-plan.js';
import { statesOf } from './shard-contents.js';

/**
 * Shapes of a model with states, frozen parameters and experts, their sharding, and cuts between the reading
 * ranks.
 */
const resharding = fc
  .array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 6 })
  .chain((numels) => {
    const total = numels.reduce((sum, numel) => sum + numel, 0);
    const readers = fc
      .uniqueArray(fc.integer({ min: 1, max: Math.max(1, total - 1) }), { maxLength: Math.min(5, total - 1) })
      .map((list) => list.sort((a, b) => a - b));
    const states = fc.subarray(STATE_NAMES.slice(1)).map((others) => ['master' as const, ...others]);
    const frozen = fc.subarray(numels.map((_, i) => i));
    const sharding = fc.record({
      block_elements: fc.integer({ min: 1, max: 16 }),
      bucket_blocks: fc.integer({ min: 1, max: 40 }),
      expert_sets: fc.constant(2),
    });
    const experts = fc.subarray(numels.map((_, i) => i));
    const expertSets = experts.map((list) => Object.fromEntries(list.map((param, i) => [param, i % 2])));
    const ranks = fc.constantFrom(2, 4, 6);
    return fc.record({
      numels: fc.constant(numels),
      ranks,
      sharding,
      states,
      frozen,
      expert_sets: expertSets,
      readers,
    });
  });

/** Returns the slices of every state that readers between the cuts will own, one list for each reader. */
function wantedOf(shape: TestCheckpointShape, cuts: readonly number[]): Wanted[] {
  const { numels, states = ADAM_STATES } = shape;
  const total = numels.reduce((sum, numel) => sum + numel, 0);
  const borders = [0, ...cuts, total];
  return borders.slice(1).map((last, i) => {
    const first = borders[i] ?? 0;
    let offset = 0;
    const slices = testParams(shape).flatMap((param) => {
      const begin = Math.max(first - offset, 0);
      const end = Math.min(last - offset, param.numel);
      offset += param.numel;
      return begin < end ? [{ param: param.name, begin, end }] : [];
    });
    return { states, slices };
  });
}

t.test('for any ranks and any cut, every byte of the state is read exactly once', async (t) => {
  await fc.assert(
    fc.asyncProperty(resharding, async (shape) => {
      // Checks that every shard has the length that follows from the manifest.
      const manifest = parseManifest(encodeManifest(testManifest(shape)));
      const reads: PlannedRead[] = [];
      for (const wanted of wantedOf(shape, shape.readers)) reads.push(...(await planReads(manifest, wanted)));
      for (const { file, data_begin, bytes } of manifest.shards) {
        const ranges = reads.filter((read) => read.file === file).sort((a, b) => a.byte_begin - b.byte_begin);
        let position = data_begin;
        for (const { byte_begin, byte_end } of ranges) {
          if (byte_begin !== position) throw new Error(`${file}: ${byte_begin} follows ${position}`);
          position = byte_end;
        }
        if (position !== bytes) throw new Error(`${file}: ends at ${position}`);
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
      const files = new Map<string, Buffer>();
      for (const { file } of manifest.shards) files.set(file, await objects.get(`${directory}/${file}`));
      const seen = new Set<number>();
      for (const wanted of wantedOf(shape, shape.readers)) {
        for (const read of await planReads(manifest, wanted)) {
          const bytes = files.get(read.file)?.subarray(read.byte_begin, read.byte_end) ?? Buffer.alloc(0);
          const param = Number(read.param.slice(1));
          for (let i = 0; i < bytes.length / 4; i += 1) {
            const expected = elementValue(shape.numels, read.state, param, read.begin + i);
            if (bytes.readFloatLE(i * 4) !== expected)
              throw new Error(`element ${read.begin + i} of ${read.param}`);
            seen.add(expected);
          }
        }
      }
      const stored = testParams(shape).map((param) => statesOf(param, shape.states).length * param.numel);
      if (seen.size !== stored.reduce((sum, count) => sum + count, 0)) throw new Error('some are missing');
    }),
    { numRuns: 50 },
  );
  t.pass('hold');
});

t.test('reads are ordered by file and byte', async (t) => {
  const shape = { numels: [50, 50], ranks: 3 };
  const manifest = testManifest(shape);
  const [wanted] = wantedOf(shape, []);
  if (!wanted) throw new Error('no reader');
  const reads = [...(await planReads(manifest, { ...wanted, slices: [...wanted.slices].reverse() }))];
  const keys = reads.map(({ file, byte_begin }) => `${file} ${String(byte_begin).padStart(9, '0')}`);
  t.ok(keys.length > 6);
  t.same(keys, [...keys].sort());
  t.same([...(await planReads(manifest, { ...wanted, slices: [] }))], []);
});

t.test('missing elements are an error', async (t) => {
  const whole: WantedSlice = { param: 'p0', begin: 0, end: 10 };
  const manifest = testManifest({ numels: [10], ranks: 2 });
  const plan = async (slice: WantedSlice, state: Wanted['states'][number] = 'master') => [
    ...(await planReads(manifest, { states: [state], slices: [slice] })),
  ];
  const incomplete = (message: string) => ({ code: 'checkpoint_incomplete', message });
  t.equal((await plan(whole)).length, 2);
  await t.rejects(plan({ ...whole, end: 11 }), incomplete('p0: element 10 is missing'), 'beyond the end');
  await t.rejects(plan({ param: 'p0', begin: 12, end: 13 }), incomplete('p0: element 12 is missing'));
  await t.rejects(plan({ ...whole, param: 'p9' }), incomplete('p9: element 0 is missing'));
  await t.rejects(plan(whole, 'sum'), incomplete('no parameter has a state sum'));
});
