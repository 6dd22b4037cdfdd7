/** Tests of the order of the steps of a commit, and of errors that end it. */
import t from 'tap';
import { ZerofleetError } from '../../../contracts/index.js';
import { ADAM_STATES, testManifest, testParams } from '../../../formats/testing/checkpoints.js';
import { keyOf, named, recordedAttempt, SHAPE } from '../../testing/recorded-attempt.js';
import { testSpec } from '../../testing/start-message.js';
import type { CompleteSave } from './save-collector.js';

const BY = {
  spec: testSpec(),
  connected: {
    kind: 'connected' as const,
    params: testParams(SHAPE),
    states: [...ADAM_STATES],
    sharding: testManifest(SHAPE).sharding,
    numerics_fingerprint: 'cpu-generic/1',
  },
  world_size: 2,
  data_digest: 'sha256:0',
  tokens_digest: 'sha256:0',
};

function saveOf(step: number, changes: Partial<CompleteSave> = {}): CompleteSave {
  return {
    directory: named(step),
    step,
    optimizer_steps: step,
    skipped_steps: 0,
    eval_losses: {},
    early_stopping: null,
    calls: null,
    reference: null,
    loss_scaler: {
      scale: 1,
      iteration: step,
      last_overflow_iteration: -1,
      hysteresis: 1,
      skipped_in_a_row: 0,
    },
    shards: testManifest(SHAPE).shards,
    base_digest_parts: null,
    digest_parts: ['0'.repeat(32), '1'.padStart(32, '0')],
    save_request: 0,
    cost: { stall_seconds: 1, write_seconds: 2 },
    ...changes,
  };
}

t.test('a save is committed by its manifest, and the lease is confirmed before any write', async (t) => {
  const { checkpoints, stops, steps, events, recorded } = await recordedAttempt(t);
  stops.setSaveRequest(5);
  await checkpoints.commit(saveOf(4, { save_request: 5 }), BY);
  t.strictSame(steps, [
    'confirm',
    `put ${named(4)}/MANIFEST.json`,
    'record job 2-a 4 for 5',
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
  t.equal(checkpoints.latestStep, 4);
  t.equal(stops.saveRequest, 0, 'the request is answered');
  t.match(events, [
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
  t.equal(checkpoints.countError(), 1, 'the error count starts again');
});

t.test('each checkpoint names its parent', async (t) => {
  const { checkpoints, store, recorded } = await recordedAttempt(t);
  const parentOf = async (step: number) =>
    JSON.parse((await store.get(`${keyOf(named(step))}/MANIFEST.json`)).toString()).parent;
  await checkpoints.commit(saveOf(4), BY);
  await checkpoints.commit(saveOf(8), BY);
  t.equal(await parentOf(4), null);
  t.equal(await parentOf(8), recorded[1]?.id);
});

t.test('an incomplete save is not committed, nor a save after a lost lease', async (t) => {
  const incomplete = await recordedAttempt(t);
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
  const lost = await recordedAttempt(t, refusing('confirm'));
  await t.rejects(lost.checkpoints.commit(saveOf(4), BY), { code: 'stale_epoch' });
  t.strictSame(lost.steps, []);
  t.equal(lost.checkpoints.latest, null);

  const late = await recordedAttempt(t, refusing('record'));
  await t.rejects(late.checkpoints.commit(saveOf(4), BY), { code: 'stale_epoch' });
  t.strictSame(late.steps, ['confirm', `put ${named(4)}/MANIFEST.json`]);
  t.equal(late.checkpoints.latest, null);
  t.equal(late.checkpoints.countError(), 4);
});

t.test('a failed removal of old checkpoints does not affect the commit', async (t) => {
  const { checkpoints } = await recordedAttempt(t, {
    before: (step) => {
      if (step === 'list') throw new ZerofleetError('stale_epoch', 'epoch 3');
    },
  });
  await checkpoints.commit(saveOf(4), BY);
  t.equal(checkpoints.latestStep, 4);
});

t.test('retention follows and keeps as many checkpoints as the job says', async (t) => {
  const { checkpoints, steps, recorded } = await recordedAttempt(t);
  for (const step of [4, 8, 12]) await checkpoints.commit(saveOf(step), BY);
  t.strictSame(steps.slice(-3), [`forget ${recorded[2]?.id}`, 'list', `delete ${named(4)}`]);
});

t.test('listing and manifest are retried when the store fails once', async (t) => {
  for (const name of ['list', 'put']) {
    let fails = true;
    const { checkpoints, steps } = await recordedAttempt(t, {
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
