import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { type CallResult, ZerofleetError } from '../../../../contracts/index.js';
import type { LoadCallMessage, RankError } from '../../../../contracts/rank-protocol.js';
import { encodeManifest } from '../../../../formats/checkpoint/manifest.js';
import { testManifest } from '../../../../formats/testing/checkpoints.js';
import { openObjectStore } from '../../../../platform/object-store/index.js';
import { startTestRedis } from '../../../../platform/testing/redis.js';
import { openJobStore } from '../../../../state/index.js';
import { createTestJob } from '../../../../state/testing/jobs.js';
import { claimForTest } from '../../../testing/attempt-context.js';
import { CallLoads } from './call-loads.js';

const CALL: LoadCallMessage = {
  kind: 'load_call',
  number: 3,
  checkpoint: 'ckpt_test',
  directory: 'jobs/j/checkpoints/1',
};
const FAILED: CallResult = { error: { code: 'shard_corrupt', message: 'chunk 0 differs' } };
const LOADED: CallResult = { step: 2, state_digest: '0'.repeat(32) };

const redis = await startTestRedis();
t.teardown(() => redis.stop());

/** Loads of an attempt whose call has a stored result, or none. */
async function loads(t: Test, before: CallResult | null) {
  const store = await openJobStore({ url: redis.url });
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  const { id } = await createTestJob(store);
  const { ctx, close } = await claimForTest({ store, objects, job_id: id });
  t.teardown(async () => {
    await close();
    await objects.close();
    await store.close();
  });
  const refused = new Map<number, RankError>();
  const calls = {
    resultOf: async () => before,
    refuse: (number: number, error: RankError) => void refused.set(number, error),
    refusalOf: (number: number) => refused.get(number) ?? null,
  };
  const verifyLoad = async () => {
    throw new ZerofleetError('shard_corrupt', 'chunk 0 differs');
  };
  return { all: new CallLoads(ctx, { calls, checkpoints: { verifyLoad } }), refused, objects };
}

t.test('a checkpoint that does not exist is the error of a new call', async (t) => {
  const { all } = await loads(t, null);
  t.match(await all.open(CALL), {
    code: 'checkpoint_not_found',
    message: /ckpt_test does not exist any more/,
  });
});

t.test('a stored error is answered again, whatever the store has now', async (t) => {
  const { all } = await loads(t, FAILED);
  t.strictSame(await all.open(CALL), FAILED.error);
});

t.test('a checkpoint that a call has loaded before must exist', async (t) => {
  const { all } = await loads(t, LOADED);
  await t.rejects(all.open(CALL), {
    code: 'checkpoint_not_found',
    message: /^call 3 has to load ckpt_test again.*does not exist any more/,
  });
});

t.test('damage that the ranks find is the error of a new call only', async (t) => {
  const damage = new ZerofleetError('object_not_found', 'shard-0 does not exist');
  for (const before of [null, LOADED]) {
    const { all, refused, objects } = await loads(t, before);
    t.notOk(all.refuse(damage), 'no checkpoint is being loaded');
    const manifest = encodeManifest(testManifest({ numels: [60], ranks: 1 }));
    await objects.put(`${CALL.directory}/MANIFEST.json`, manifest);
    t.equal(await all.open(CALL), null);
    await t.rejects(all.verify([]), { code: 'shard_corrupt' });
    t.notOk(all.refuse(new ZerofleetError('rank_lost', 'killed')), 'a lost rank is no damage');
    t.equal(all.refuse(damage), before === null);
    t.strictSame([...refused.keys()], before === null ? [3] : []);
    t.match(await all.open(CALL), before === null ? { code: 'object_not_found' } : null);
    all.ended(3);
    t.notOk(all.refuse(damage), 'the load has ended');
  }
});
