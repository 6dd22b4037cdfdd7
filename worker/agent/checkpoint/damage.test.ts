/**
 * Tests that a load detects changed and missing bytes of a checkpoint, with a code that causes a fallback.
 * format.test.ts tests all bytes of a manifest.
 */
import t from 'tap';
import { CHUNK_BYTES } from '../../../formats/checkpoint/manifest.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import { loadCheckpoint } from '../../rank/load/load-checkpoint.js';
import { codeOf } from '../../shared/errors.js';
import type { RankTrainer } from '../../shared/native/adapter.js';
import { verifyLoadedRanges } from '../../shared/verify-load.js';
import { checkCuts, checkFlips, source, store, verify } from '../../testing/checks/damaged-loads.js';

const retry = { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 };
const STRIDE = { manifest: 397, shard: 61 };

t.test('one changed bit in every region of every object is detected', (t) => checkFlips(t, STRIDE));

t.test('every truncated or missing object is detected', (t) => checkCuts(t, STRIDE));

t.test(
  'shards with several chunks: the first and last byte of each chunk, and truncations at each border',
  async (t) => {
    const { objects, replace } = await store(t);
    const sharding = { block_elements: 4096, bucket_blocks: 64, expert_sets: 1 };
    const shape = { numels: [700_000, 600_000], ranks: 2, sharding };
    const { shards, params } = await putTestCheckpoint(objects, 'whole', shape);
    const slices = [0, 1].map((param) => ({ param, begin: 0, end: shape.numels[param] ?? 0 }));
    const trainer = { slices: () => slices, load: () => undefined } as unknown as RankTrainer;
    const state = {
      params,
      optimizer: 'adamw' as const,
      states: ['master', 'exp_avg', 'exp_avg_sq'] as const,
      num_base: params.length,
    };
    const loadCode = async () => {
      try {
        const all = { objects, source: { ...source, directory: 'whole' }, trainer, state, retry };
        const { ranges } = await loadCheckpoint(all);
        await verifyLoadedRanges(objects, 'whole', shards, ranges);
        return null;
      } catch (error) {
        return codeOf(error) ?? String(error);
      }
    };
    t.equal(await loadCode(), null);
    for (const { file, bytes, crc32c } of shards) {
      const chunks = crc32c.length / 8;
      t.ok(chunks > 1, `${file} has ${chunks} chunks`);
      const key = `whole/${file}`;
      const good = await objects.get(key);
      const borders = Array.from({ length: chunks }, (_, chunk) => chunk * CHUNK_BYTES);
      for (const at of [...borders, ...borders.slice(1).map((border) => border - 1), bytes - 1]) {
        const bad = Buffer.from(good);
        bad[at] = (bad[at] ?? 0) ^ 0x80;
        await replace(key, bad);
        t.strictSame(
          [await loadCode(), await verify(objects, 'whole')],
          ['shard_corrupt', 'shard_corrupt'],
          `${at}`,
        );
      }
      for (const length of [...borders, bytes - 1]) {
        await replace(key, good.subarray(0, length));
        t.strictSame(
          [await loadCode(), await verify(objects, 'whole')],
          ['invalid_range', 'shard_corrupt'],
          `cut ${length}`,
        );
      }
      await replace(key, good);
    }
  },
);
