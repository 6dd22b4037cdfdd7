/** The checkpoints of a job without a job store and without processes: in which order things happen, and what ends them. */
import t, { type Test } from 'tap';
import { type Checkpoint, ZerofleetError } from '../../contracts/index.js';
import { checkpointDirectory, checkpointKey } from '../../platform/checkpoint/layout.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import {
  ADAM_STATES,
  putTestCheckpoint,
  testManifest,
  testParams,
} from '../../platform/testing/checkpoints.js';
import { describeError } from '../agent/failure.js';
import { type NotedAttemptOptions, notedAttempt } from '../testing/noted-attempt.js';
import { JobCheckpoints } from './job-checkpoints.js';
import type { CompleteSave } from './save-collector.js';

const SHAPE = { numels: [10], cuts: [5] };
const EPOCH = 2;
const named = (step: number, epoch = EPOCH, nonce = 'aaaaaaaa') =>
  checkpointDirectory({ step, epoch, nonce });
const keyOf = (directory: string) => checkpointKey('job', directory);
const record = (directory: string) =>
  ({ id: `of ${directory}`, prefix: keyOf(directory), step: 1 }) as Checkpoint;

async function setup(t: Test, options: NotedAttemptOptions = {}) {
  const attempt = await notedAttempt(t, EPOCH, options);
  return { ...attempt, checkpoints: new JobCheckpoints(attempt.ctx, 3) };
}

const BY = {
  connected: {
    kind: 'connected' as const,
    params: testParams(SHAPE),
    states: [...ADAM_STATES],
    numerics_fingerprint: 'cpu-generic/1',
  },
  world_size: 2,
  data_digest: 'sha256:0',
};

function saveOf(step: number, changes: Partial<CompleteSave> = {}): CompleteSave {
  return {
    directory: named(step),
    step,
    optimizer_steps: step,
    skipped_steps: 0,
    loss_scaler: {
      scale: 1,
      iteration: step,
      last_overflow_iteration: -1,
      hysteresis: 1,
      skipped_in_a_row: 0,
    },
    lr_override: null,
    loss_scale_override: null,
    shards: testManifest(SHAPE).shards,
    digest_parts: ['0'.repeat(32), '1'.padStart(32, '0')],
    save_request: 0,
    cost: { stall_seconds: 1, write_seconds: 2 },
    ...changes,
  };
}

t.test(
  'a save counts when its manifest is there; nothing comes before the question of whose the job is',
  async (t) => {
    const { checkpoints, stops, steps, told, recorded } = await setup(t);
    stops.setSaveRequest(5);
    await checkpoints.commit(saveOf(4, { save_request: 5 }), BY);
    t.strictSame(steps, [
      'confirm',
      `put ${named(4)}/MANIFEST.json`,
      'record job 2 4 for 5',
      'checkpoint.saved',
      'list',
    ]);
    const [first] = recorded;
    t.equal(
      first?.bytes,
      testManifest(SHAPE).shards.reduce((sum, { bytes }) => sum + bytes, 0),
    );
    t.match(first, { step: 4, prefix: keyOf(named(4)), world_size: 2, job_id: 'job' });
    t.equal(checkpoints.latest, first);
    t.equal(checkpoints.latest_step, 4);
    t.equal(stops.save_request, 0, 'the request is answered');
    t.match(told, [
      {
        type: 'checkpoint.saved',
        data: {
          checkpoint: first?.id,
          step: 4,
          bytes: first?.bytes,
          stall_seconds: 1,
          write_seconds: 2,
          save_request: 5,
        },
      },
    ]);
    t.equal(checkpoints.countError(), 1, 'errors count from here anew');
  },
);

t.test('each checkpoint knows the one before', async (t) => {
  const { checkpoints, store, recorded } = await setup(t);
  const parentOf = async (step: number) =>
    JSON.parse((await store.get(`${keyOf(named(step))}/MANIFEST.json`)).toString()).parent;
  await checkpoints.commit(saveOf(4), BY);
  await checkpoints.commit(saveOf(8), BY);
  t.equal(await parentOf(4), null);
  t.equal(await parentOf(8), recorded[1]?.id);
});

t.test('what is not whole, or not ours any more, is not committed', async (t) => {
  const incomplete = await setup(t);
  const shards = testManifest(SHAPE).shards.slice(1);
  await t.rejects(incomplete.checkpoints.commit(saveOf(4, { shards }), BY), {
    code: 'checkpoint_incomplete',
  });
  t.strictSame(incomplete.steps, []);

  const refusing = (step: string) => ({
    before: (now: string) => {
      if (now.startsWith(step)) throw new ZerofleetError('stale_epoch', 'epoch 3');
    },
  });
  const lost = await setup(t, refusing('confirm'));
  await t.rejects(lost.checkpoints.commit(saveOf(4), BY), { code: 'stale_epoch' });
  t.strictSame(lost.steps, []);
  t.equal(lost.checkpoints.latest, null);

  const late = await setup(t, refusing('record'));
  await t.rejects(late.checkpoints.commit(saveOf(4), BY), { code: 'stale_epoch' });
  t.strictSame(late.steps, ['confirm', `put ${named(4)}/MANIFEST.json`]);
  t.equal(late.checkpoints.latest, null);
  t.equal(late.checkpoints.countError(), 4);
});

t.test('a checkpoint counts though old ones can not be removed', async (t) => {
  const { checkpoints } = await setup(t, {
    before: (step) => {
      if (step === 'list') throw new ZerofleetError('stale_epoch', 'epoch 3');
    },
  });
  await checkpoints.commit(saveOf(4), BY);
  t.equal(checkpoints.latest_step, 4);
});

t.test('retention follows, and keeps as many as the job says', async (t) => {
  const { checkpoints, steps, recorded } = await setup(t);
  for (const step of [4, 8, 12]) await checkpoints.commit(saveOf(step), BY);
  t.strictSame(steps.slice(-3), [`forget ${recorded[2]?.id}`, 'list', `delete ${named(4)}`]);
});

t.test('the newest of a job that has none is null', async (t) => {
  const { checkpoints, steps } = await setup(t);
  t.equal(await checkpoints.newest(), null);
  t.equal(checkpoints.latest_step, null);
  t.strictSame(steps, ['list', 'confirm', 'abandon jobs/job/checkpoints/']);
});

t.test('the newest is taken and told of; what never became one goes', async (t) => {
  const { checkpoints, steps, store } = await setup(t);
  await putTestCheckpoint(store, keyOf(named(5, 1)), SHAPE, 'ckpt_old');
  await putTestCheckpoint(store, keyOf(named(10, 1)), SHAPE, 'ckpt_new');
  await store.put(`${keyOf(named(15, 1))}/shard-0`, Buffer.from('x'));
  await store.put(`${keyOf(named(16, 3))}/shard-0`, Buffer.from('x'));
  const found = await checkpoints.newest();
  t.match(found, {
    prefix: keyOf(named(10, 1)),
    manifest: { id: 'ckpt_new' },
    checkpoint: { id: 'ckpt_new' },
  });
  t.equal(checkpoints.latest, found?.checkpoint);
  t.strictSame(steps, [
    'list',
    'confirm',
    `delete ${named(15, 1)}`,
    'abandon jobs/job/checkpoints/',
    'record job 2 10 for 0',
  ]);
});

t.test('nothing is removed by an agent that has lost the job', async (t) => {
  const { checkpoints, steps, store } = await setup(t, {
    before: (step) => {
      if (step === 'confirm') throw new ZerofleetError('stale_epoch', 'epoch 3');
    },
  });
  await store.put(`${keyOf(named(15, 1))}/shard-0`, Buffer.from('x'));
  await t.rejects(checkpoints.newest(), { code: 'stale_epoch' });
  t.strictSame(steps, ['list']);
});

t.test('what can not be removed does not keep a job from going on', async (t) => {
  for (const failing of ['delete', 'abandon']) {
    const { checkpoints, store } = await setup(t, {
      before: (step) => {
        if (step.startsWith(failing)) throw new ZerofleetError('access_denied', 'no');
      },
    });
    await putTestCheckpoint(store, keyOf(named(10, 1)), SHAPE, 'ckpt_new');
    await store.put(`${keyOf(named(15, 1))}/shard-0`, Buffer.from('x'));
    t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_new', failing);
  }
});

t.test('a manifest outside the line of checkpoints is removed and not used', async (t) => {
  const { checkpoints, steps, store } = await setup(t, { recorded: [record(named(6, 2))] });
  await putTestCheckpoint(store, keyOf(named(6, 2)), SHAPE, 'ckpt_known');
  await putTestCheckpoint(store, keyOf(named(9, 1)), SHAPE, 'ckpt_stray');
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_known');
  t.ok(steps.includes(`delete ${named(9, 1)}`));
});

t.test('one that can not be read is passed over for the one before, and an event says so', async (t) => {
  const { checkpoints, steps, told, store } = await setup(t, { recorded: [record(named(10, 2))] });
  await putTestCheckpoint(store, keyOf(named(5, 2)), SHAPE, 'ckpt_old');
  await store.put(`${keyOf(named(10, 2))}/MANIFEST.json`, Buffer.from('{'));
  await store.put(`${keyOf(named(11, 2))}/MANIFEST.json`, Buffer.from('{'));
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old');
  const fallback = (name: string, id: string | null, step: number | null) => ({
    type: 'checkpoint.fallback',
    data: { checkpoint: id, step, prefix: keyOf(name), code: 'manifest_invalid', message: /JSON/ },
  });
  t.match(told, [fallback(named(11, 2), null, null), fallback(named(10, 2), `of ${named(10, 2)}`, 1)]);
  told.length = 0;
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old');
  t.strictSame(told, [], 'and not looked at again');
  t.notOk(
    steps.some((step) => step.startsWith('delete')),
    'nor removed',
  );
});

t.test('a store that is away is no damage', async (t) => {
  const { checkpoints, told, store } = await setup(t);
  await putTestCheckpoint(store, keyOf(named(5, 2)), SHAPE, 'ckpt_old');
  const get = store.get.bind(store);
  let fails = 2;
  store.get = async (...call: Parameters<ObjectStore['get']>) => {
    fails -= 1;
    if (fails >= 0) throw new ZerofleetError('object_store_unavailable', 'away');
    return get(...call);
  };
  await t.rejects(checkpoints.newest(), { code: 'object_store_unavailable' });
  t.strictSame(told, []);
  fails = 1;
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old', 'it is asked again');
});

t.test('one that was rejected is not used again', async (t) => {
  const { checkpoints, told, store } = await setup(t);
  await putTestCheckpoint(store, keyOf(named(5, 2)), SHAPE, 'ckpt_old');
  await putTestCheckpoint(store, keyOf(named(10, 2)), SHAPE, 'ckpt_new');
  const newest = await checkpoints.newest();
  if (!newest) throw new Error('none');
  await checkpoints.reject(newest, describeError(new ZerofleetError('shard_corrupt', 'chunk 3')));
  t.match(told, [
    {
      type: 'checkpoint.fallback',
      data: { checkpoint: 'ckpt_new', step: 10, code: 'shard_corrupt', message: 'chunk 3' },
    },
  ]);
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old');
});

t.test('what the ranks read is compared with what is stored', async (t) => {
  const { checkpoints, store } = await setup(t);
  const directory = keyOf(named(5));
  const { shards } = await putTestCheckpoint(store, directory, SHAPE, 'ckpt');
  const source = { kind: 'checkpoint', directory, restore: 'full', own: true } as const;
  const range = { file: shards[0]?.file ?? '', begin: 64, end: 68, crc32c: '00000000' };
  await t.resolves(checkpoints.verifyLoad({ source, files: shards }, []));
  await t.rejects(checkpoints.verifyLoad({ source, files: shards }, [range]), { code: 'shard_corrupt' });
});

t.test('a store that fails once is asked again, for the list and for the manifest', async (t) => {
  for (const name of ['list', 'put']) {
    let fails = true;
    const { checkpoints, steps } = await setup(t, {
      before: (step) => {
        if (!fails || !step.startsWith(name)) return;
        fails = false;
        throw new ZerofleetError('object_store_unavailable', 'away');
      },
    });
    await checkpoints.newest();
    await checkpoints.commit(saveOf(4), BY);
    t.equal(fails, false);
    t.ok(steps.includes(`put ${named(4)}/MANIFEST.json`), name);
  }
});

t.test('the time without a checkpoint is counted once', async (t) => {
  let now = 50_000;
  t.intercept(performance, 'now', { value: () => now });
  const { checkpoints } = await setup(t);
  now += 3_000;
  t.equal(checkpoints.unsavedSeconds(), 3);
  now += 2_000;
  t.equal(checkpoints.unsavedSeconds(), 2);
  now += 7_000;
  checkpoints.workBegins();
  now += 1_500;
  t.equal(checkpoints.unsavedSeconds(), 1.5);
});

t.test('errors are counted on from those of the attempt before', async (t) => {
  const { checkpoints } = await setup(t);
  t.equal(checkpoints.countError(), 4);
  t.equal(checkpoints.countError(), 5);
});
