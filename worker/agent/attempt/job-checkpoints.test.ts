/** Tests of the choice of a job's checkpoint, and of retention and leftovers. */
import t from 'tap';
import { type Checkpoint, ZerofleetError } from '../../../contracts/index.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { keyOf, named, recordedAttempt, SHAPE } from '../../testing/recorded-attempt.js';
import { describeError } from './failure.js';

const record = (directory: string) =>
  ({ id: `of ${directory}`, prefix: keyOf(directory), step: 1 }) as Checkpoint;

t.test('the newest checkpoint of a job without one is null', async (t) => {
  const { checkpoints, steps } = await recordedAttempt(t);
  t.equal(await checkpoints.newest(), null);
  t.equal(checkpoints.latestStep, null);
  t.strictSame(steps, ['list', 'confirm', 'confirm', 'abandon jobs/job/checkpoints/']);
});

t.test('the newest checkpoint is used and recorded; incomplete saves are removed', async (t) => {
  const { checkpoints, steps, store } = await recordedAttempt(t);
  await putTestCheckpoint(store, keyOf(named(5, '1-a')), SHAPE, 'ckpt_old');
  await putTestCheckpoint(store, keyOf(named(10, '1-a')), SHAPE, 'ckpt_new');
  await store.put(`${keyOf(named(15, '1-a'))}/shard-0`, Buffer.from('x'));
  await store.put(`${keyOf(named(16, '3-a'))}/shard-0`, Buffer.from('x'));
  const found = await checkpoints.newest();
  t.match(found, {
    prefix: keyOf(named(10, '1-a')),
    manifest: { id: 'ckpt_new' },
    checkpoint: { id: 'ckpt_new' },
  });
  t.equal(checkpoints.latest, found?.checkpoint);
  t.strictSame(steps, [
    'list',
    'confirm',
    `delete ${named(15, '1-a')}`,
    'confirm',
    'abandon jobs/job/checkpoints/',
    'record job 2-a 10 for 0',
  ]);
});

t.test('an agent that lost the lease removes nothing', async (t) => {
  const { checkpoints, steps, store } = await recordedAttempt(t, {
    before: (step) => {
      if (step === 'confirm') throw new ZerofleetError('stale_epoch', 'epoch 3');
    },
  });
  await store.put(`${keyOf(named(15, '1-a'))}/shard-0`, Buffer.from('x'));
  await t.rejects(checkpoints.newest(), { code: 'stale_epoch' });
  t.strictSame(steps, ['list']);
});

t.test('a failed removal does not stop a job', async (t) => {
  for (const failing of ['delete', 'abandon']) {
    const { checkpoints, store } = await recordedAttempt(t, {
      before: (step) => {
        if (step.startsWith(failing)) throw new ZerofleetError('access_denied', 'no');
      },
    });
    await putTestCheckpoint(store, keyOf(named(10, '1-a')), SHAPE, 'ckpt_new');
    await store.put(`${keyOf(named(15, '1-a'))}/shard-0`, Buffer.from('x'));
    t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_new', failing);
  }
});

t.test('a manifest outside the lineage is removed and not used', async (t) => {
  const { checkpoints, steps, store } = await recordedAttempt(t, { recorded: [record(named(6, '2-a'))] });
  await putTestCheckpoint(store, keyOf(named(6, '2-a')), SHAPE, 'ckpt_known');
  await putTestCheckpoint(store, keyOf(named(9, '1-a')), SHAPE, 'ckpt_stray');
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_known');
  t.ok(steps.includes(`delete ${named(9, '1-a')}`));
});

t.test(
  'of one step the checkpoint with a changed tensor is used, and the other one was evaluated',
  async (t) => {
    for (const [made, saved] of [
      [named(6, '2-a'), named(6, '2-b')],
      [named(6, '2-b'), named(6, '2-a')],
    ] as const) {
      const madeFrom = {
        checkpoint_id: 'ckpt_1',
        edit_id: 'e',
        tensor: 'p0',
        tensor_state: 'master',
      } as const;
      const recorded = [
        { ...record(made), id: 'ckpt_2', step: 6, made_from: madeFrom },
        { ...record(saved), id: 'ckpt_1', step: 6 },
      ];
      const { checkpoints, store } = await recordedAttempt(t, { recorded });
      const earlyStopping = { best_eval_loss: 2, best_step: 6, evaluations_without_improvement: 0 };
      await putTestCheckpoint(store, keyOf(saved), SHAPE, 'ckpt_1', {
        step: 6,
        early_stopping: earlyStopping,
      });
      await putTestCheckpoint(store, keyOf(made), SHAPE, 'ckpt_2', {
        step: 6,
        early_stopping: earlyStopping,
        made_from: madeFrom,
      });
      const found = await checkpoints.newest();
      t.equal(found?.checkpoint.id, 'ckpt_2');
      t.equal(found?.best.checkpoint.id, 'ckpt_1');
    }
  },
);

t.test('an unreadable checkpoint is skipped for the one before, with an event', async (t) => {
  const others = Array.from({ length: 30 }, (_, i) => record(named(100 - i, '1-a')));
  const recorded = [...others, record(named(10, '2-a')), record(named(5, '2-a'))];
  const { checkpoints, steps, events, store } = await recordedAttempt(t, { recorded });
  await putTestCheckpoint(store, keyOf(named(5, '2-a')), SHAPE, 'ckpt_old');
  await store.put(`${keyOf(named(10, '2-a'))}/MANIFEST.json`, Buffer.from('{'));
  await store.put(`${keyOf(named(11, '2-a'))}/MANIFEST.json`, Buffer.from('{'));
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old');
  const fallback = (name: string, id: string | null, step: number | null) => ({
    type: 'checkpoint.fallback',
    data: { checkpoint: id, step, prefix: keyOf(name), code: 'manifest_invalid', message: /JSON/ },
  });
  t.match(events, [
    fallback(named(11, '2-a'), null, null),
    fallback(named(10, '2-a'), `of ${named(10, '2-a')}`, 1),
  ]);
  events.length = 0;
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old');
  t.strictSame(events, [], 'and not read again');
  t.notOk(
    steps.some((step) => step.startsWith('delete')),
    'nor removed',
  );
});

t.test('an unavailable store is no damage', async (t) => {
  const { checkpoints, events, store } = await recordedAttempt(t);
  await putTestCheckpoint(store, keyOf(named(5, '2-a')), SHAPE, 'ckpt_old');
  const get = store.get.bind(store);
  let fails = 2;
  store.get = async (...call: Parameters<ObjectStore['get']>) => {
    fails -= 1;
    if (fails >= 0) throw new ZerofleetError('object_store_unavailable', 'away');
    return get(...call);
  };
  await t.rejects(checkpoints.newest(), { code: 'object_store_unavailable' });
  t.strictSame(events, []);
  fails = 1;
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old', 'the read is retried');
});

t.test('a rejected checkpoint is not used again', async (t) => {
  const { checkpoints, events, recorded, store } = await recordedAttempt(t, {
    recorded: [record(named(5, '2-a'))],
  });
  await putTestCheckpoint(store, keyOf(named(5, '2-a')), SHAPE, 'ckpt_old');
  await putTestCheckpoint(store, keyOf(named(10, '2-a')), SHAPE, 'ckpt_new');
  const newest = await checkpoints.newest();
  if (!newest) throw new Error('none');
  await checkpoints.reject(newest, describeError(new ZerofleetError('shard_corrupt', 'chunk 3')));
  t.match(events, [
    {
      type: 'checkpoint.fallback',
      data: { checkpoint: 'ckpt_new', step: 10, code: 'shard_corrupt', message: 'chunk 3' },
    },
  ]);
  t.equal(recorded.find(({ id }) => id === 'ckpt_new')?.damaged, true, 'later agents see the damage');
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old');
});

t.test(
  'the final retention is retried; an event reports checkpoints that could not be removed',
  async (t) => {
    for (const failures of [1, 2]) {
      let left = failures;
      const { checkpoints, steps, events, store } = await recordedAttempt(t, {
        recorded: [record(named(10, '2-a'))],
        before: (step) => {
          if (step.startsWith('delete') && left-- > 0)
            throw new ZerofleetError('object_store_unavailable', 'away');
        },
      });
      // An interrupted retention removed its record.
      await putTestCheckpoint(store, keyOf(named(5, '2-a')), SHAPE, 'ckpt_old');
      await putTestCheckpoint(store, keyOf(named(10, '2-a')), SHAPE, 'ckpt_new');
      await checkpoints.retain({ attempts: 2, first_delay_ms: 1, max_delay_ms: 1 });
      if (failures === 1) t.strictSame([steps, events], [['list', 'list', `delete ${named(5, '2-a')}`], []]);
      else
        t.match(events, [
          { type: 'checkpoint.retention_failed', data: { code: 'object_store_unavailable' } },
        ]);
    }
  },
);

t.test('an agent that lost the lease or has to stop does not finish the retention', async (t) => {
  const stopped = AbortSignal.abort();
  for (const [code, signal] of [['stale_epoch'], ['object_store_unavailable', stopped]] as const) {
    const { checkpoints, events } = await recordedAttempt(t, {
      before: (step) => {
        if (step === 'list') throw new ZerofleetError(code, 'no');
      },
    });
    await t.rejects(checkpoints.retain({ attempts: 1, first_delay_ms: 1, max_delay_ms: 1 }, signal), {
      code,
    });
    t.strictSame(events, []);
  }
});

t.test('an export error with another cause does not mark its checkpoint as damaged', async (t) => {
  const { checkpoints, store } = await recordedAttempt(t);
  await putTestCheckpoint(store, keyOf(named(5, '2-a')), SHAPE, 'ckpt');
  const last = await checkpoints.newest();
  if (!last) throw new Error('none');
  const missing = new ZerofleetError('object_not_found', 'models/mdl_1/tokenizer.json');
  t.equal(await checkpoints.isDamaged(last, missing), false);
  t.equal(await checkpoints.isDamaged(last, new ZerofleetError('disk_full', 'no')), false);
  t.equal(await checkpoints.isDamaged(last, new ZerofleetError('shard_corrupt', 'chunk 0')), true);
  await store.delete([`${last.prefix}/${last.manifest.shards[1]?.file}`]);
  t.equal(await checkpoints.isDamaged(last, missing), true);
});

t.test('a checkpoint whose deletion was interrupted does not come back', async (t) => {
  let records = 0;
  const { checkpoints, store } = await recordedAttempt(t, {
    recorded: [record(named(5, '2-a'))],
    before: (step) => {
      if (step.startsWith('record') && records++ === 0)
        throw new ZerofleetError('checkpoint_not_found', 'deleted');
    },
  });
  await putTestCheckpoint(store, keyOf(named(5, '2-a')), SHAPE, 'ckpt_old');
  await putTestCheckpoint(store, keyOf(named(10, '2-a')), SHAPE, 'ckpt_deleted');
  t.equal((await checkpoints.newest())?.checkpoint.id, 'ckpt_old');
});

t.test('the checksums of the ranks are compared with the stored ones', async (t) => {
  const { checkpoints, store } = await recordedAttempt(t);
  const directory = keyOf(named(5));
  const { shards } = await putTestCheckpoint(store, directory, SHAPE, 'ckpt');
  const source = { kind: 'checkpoint', directory, restore: 'full', own: true } as const;
  const range = { file: shards[0]?.file ?? '', begin: 64, end: 68, crc32c: '00000000' };
  await t.resolves(checkpoints.verifyLoad({ source, files: shards }, []));
  await t.rejects(checkpoints.verifyLoad({ source, files: shards }, [range]), { code: 'shard_corrupt' });
});

t.test('time without a checkpoint is counted once', async (t) => {
  let now = 50_000;
  t.intercept(performance, 'now', { value: () => now });
  const { checkpoints } = await recordedAttempt(t);
  now += 3_000;
  t.equal(checkpoints.unsavedSeconds(), 3);
  now += 2_000;
  t.equal(checkpoints.unsavedSeconds(), 2);
  now += 7_000;
  checkpoints.restartLostWorkClock();
  now += 1_500;
  t.equal(checkpoints.unsavedSeconds(), 1.5);
});

t.test('errors of earlier attempts count', async (t) => {
  const { checkpoints } = await recordedAttempt(t);
  t.equal(checkpoints.countError(), 4);
  t.equal(checkpoints.countError(), 5);
});
