import t from 'tap';
import { STEP_FLAGS } from '../../contracts/rank-protocol.js';
import { runScript as run, type Script } from './testing/train-script.js';

t.test('it saves every k steps and the last one with the final retry policy', async (t) => {
  const { end, saved, sent } = await run({ steps: 7, every_steps: 3 });
  t.strictSame(saved, ['3 periodic', '6 periodic', '7 final']);
  t.strictSame(end, { step: 7, flags: 0 });
  t.equal(sent.filter(({ kind }) => kind === 'stepped').length, 7);
});

t.test('a last step that is also periodic is saved once', async (t) => {
  t.strictSame((await run({ steps: 6, every_steps: 3 })).saved, ['3 periodic', '6 final']);
});

t.test('only rank 0 reports steps', async (t) => {
  t.strictSame((await run({ steps: 2, every_steps: 10, rank: 1 })).sent, []);
  t.match((await run({ steps: 3, every_steps: 10, first_step: 1 })).sent, [{ step: 2 }, { step: 3 }]);
  t.strictSame((await run({ steps: 3, every_steps: 10, first_step: 3 })).sent, []);
});

t.test('it continues at its first step', async (t) => {
  const { saved, passed } = await run({ steps: 6, every_steps: 4, first_step: 3 });
  t.strictSame({ saved, steps: passed.length }, { saved: ['4 periodic', '6 final'], steps: 3 });
});

t.test('it evaluates every k steps and after the last, on every rank; rank 0 reports', async (t) => {
  const options = { steps: 7, every_steps: 100, evaluate_every: 3 };
  const { sent, evaluated } = await run(options);
  t.strictSame(evaluated, [3, 6, 7]);
  const stepped = sent.flatMap((message) => (message.kind === 'stepped' ? [message] : []));
  t.strictSame(
    stepped.map(({ evaluations: [first] }) => first?.loss ?? null),
    [null, null, 2 / 3, null, null, 2 / 6, 2 / 7],
  );
  const phases = { data: 0, forward: 0.123457, backward: 0.8, exchange: 0, optimizer: 0, gather: 0 };
  t.strictSame(stepped[0]?.seconds, { total: 1, ...phases });
  t.match(stepped[2]?.evaluations, [{ name: 'validation', tokens: 7, sequences: 3, seconds: Number }]);
  t.strictSame((await run({ ...options, rank: 1 })).evaluated, [3, 6, 7]);
  t.strictSame((await run({ ...options, first_step: 4 })).evaluated, [6, 7], 'the same steps after a resume');
  t.strictSame((await run({ steps: 3, every_steps: 100 })).evaluated, []);
});

t.test('a save after an evaluated step has its loss, on every rank', async (t) => {
  for (const rank of [0, 1]) {
    const { recorded } = await run({ steps: 7, every_steps: 2, evaluate_every: 3, rank });
    const expected = { 6: { validation: 2 / 6 }, 7: { validation: 2 / 7 } };
    t.strictSame(recorded, expected, 'none of steps 2 and 4');
  }
});

t.test('each file is evaluated at the same steps; a loss that is not finite is not recorded', async (t) => {
  const losses = { validation: { 2: 3, 4: 2 }, code: { 2: 5, 4: Number.NaN }, 'chat-1': { 2: 7, 4: 6 } };
  const { sent, recorded } = await run({ steps: 4, every_steps: 2, evaluate_every: 2, losses });
  t.strictSame(recorded, { 2: { validation: 3, code: 5, 'chat-1': 7 }, 4: { validation: 2, 'chat-1': 6 } });
  const evaluations = sent.flatMap((message) => (message.kind === 'stepped' ? [message.evaluations] : []));
  t.strictSame(
    evaluations.map((all) => all.map(({ name, loss }) => `${name} ${loss}`)),
    [[], ['validation 3', 'code 5', 'chat-1 7'], [], ['validation 2', 'code NaN', 'chat-1 6']],
  );
});

const STOPPING: Script = {
  steps: 20,
  every_steps: 100,
  evaluate_every: 2,
  losses: { validation: { 2: 4, 4: 3, 6: 2.5, 8: 3, 10: 2.5, 12: 2.75, 14: 1 } },
  stopping: { patience: 3 },
};

t.test('early stopping saves improvements, and ends after the same step on every rank', async (t) => {
  for (const rank of [0, 1]) {
    const { end, saved, states, sent } = await run({ ...STOPPING, rank });
    t.strictSame(end, { step: 12, flags: 0 });
    t.strictSame(saved, ['2 final', '4 final', '6 final', '12 final']);
    const best = { best_eval_loss: 2.5, best_step: 6 };
    t.strictSame(states[6], { ...best, evaluations_without_improvement: 0 });
    t.strictSame(states[12], { ...best, evaluations_without_improvement: 3 });
    const last = sent.at(-1);
    if (rank === 0) t.match(last, { kind: 'stepped', step: 12, early_stopping: states[12] });
  }
});

t.test('early stopping judges the metric that it names', async (t) => {
  const { validation } = STOPPING.losses as Record<string, Record<number, number>>;
  const losses = { validation: {}, code: { ...validation } };
  const stopping = { metric: 'eval_loss/code', patience: 3 };
  const { end, states } = await run({ ...STOPPING, losses, stopping });
  t.strictSame(end, { step: 12, flags: 0 });
  t.strictSame(states[12], { best_eval_loss: 2.5, best_step: 6, evaluations_without_improvement: 3 });
  const other = await run({ ...STOPPING, losses, stopping: { patience: 3 } });
  t.strictSame(other.end, { step: 20, flags: 0 }, 'the loss of the validation data falls all the time');
});

t.test('early stopping continues with the state of a checkpoint', async (t) => {
  for (const firstStep of [6, 7, 9, 10, 11]) {
    const evaluationsWithoutImprovement = Math.floor(firstStep / 2) - 3;
    const earlyStopping = {
      best_eval_loss: 2.5,
      best_step: 6,
      evaluations_without_improvement: evaluationsWithoutImprovement,
    };
    const { end, saved } = await run({ ...STOPPING, first_step: firstStep, early_stopping: earlyStopping });
    t.strictSame({ end, saved }, { end: { step: 12, flags: 0 }, saved: ['12 final'] }, `from ${firstStep}`);
  }
});

t.test('a step that ends the training is complete although a pause was requested', async (t) => {
  const { end, saved } = await run({ ...STOPPING, others: { 12: STEP_FLAGS.pause } });
  t.strictSame(end, { step: 12, flags: 0 });
  t.equal(saved.at(-1), '12 final');
  const cancelled = await run({ ...STOPPING, others: { 12: STEP_FLAGS.cancel } });
  t.strictSame(cancelled.end, { step: 12, flags: STEP_FLAGS.cancel });
});

t.test('the save of an improvement is not skipped, and answers a request', async (t) => {
  const { saved, answered } = await run({ ...STOPPING, busy: [4], requests: { 4: 1 } });
  t.strictSame(saved, ['2 final', '4 final', '6 final', '12 final']);
  t.strictSame(answered, ['1 at 4']);
});

t.test('a step is evaluated before a pause, and not before a cancellation', async (t) => {
  const options = { steps: 9, every_steps: 100, evaluate_every: 4 };
  t.strictSame((await run({ ...options, others: { 4: STEP_FLAGS.pause } })).evaluated, [4]);
  t.strictSame((await run({ ...options, others: { 4: STEP_FLAGS.cancel } })).evaluated, []);
});

t.test('a pause saves and stops, whichever rank set it', async (t) => {
  const mine = await run({ steps: 9, every_steps: 100, agent_flags: { 4: STEP_FLAGS.pause } });
  const theirs = await run({ steps: 9, every_steps: 100, others: { 4: STEP_FLAGS.pause } });
  for (const { end, saved } of [mine, theirs]) {
    t.strictSame({ end, saved }, { end: { step: 4, flags: STEP_FLAGS.pause }, saved: ['4 final'] });
  }
});

t.test('a cancellation stops without saving, even with a pause or at a periodic step', async (t) => {
  const { end, saved } = await run({
    steps: 9,
    every_steps: 4,
    others: { 4: STEP_FLAGS.cancel | STEP_FLAGS.pause },
  });
  t.strictSame({ step: end.step, saved }, { step: 4, saved: [] });
});

t.test('a requested checkpoint is saved once, and each request is answered', async (t) => {
  const { saved, passed, answered } = await run({ steps: 6, requests: { 2: 1, 4: 3 } });
  t.strictSame(saved, ['2 periodic', '4 periodic', '6 final']);
  t.strictSame(answered, ['1 at 2', '3 at 4']);
  t.strictSame(passed, [0, STEP_FLAGS.checkpoint, 0, STEP_FLAGS.checkpoint, 0, 0]);
});

t.test('other ranks leave requests and clocks to rank 0 and follow its flags', async (t) => {
  const options = { steps: 5, rank: 1, checkpoint: { every_seconds: 1 } };
  const { saved, passed } = await run({
    ...options,
    requests: { 2: 1 },
    others: { 3: STEP_FLAGS.checkpoint },
  });
  t.strictSame(saved, ['3 periodic', '5 final']);
  t.strictSame(passed, [0, 0, 0, 0, 0]);
});

t.test('a request that a busy rank skips is repeated', async (t) => {
  const { saved, answered } = await run({ steps: 5, requests: { 2: 1 }, busy: [2, 3] });
  t.strictSame(saved, ['4 periodic', '5 final']);
  t.strictSame(answered, ['1 at 4']);
});

t.test('with on_busy wait no save is skipped', async (t) => {
  const { saved, passed } = await run({
    steps: 4,
    every_steps: 2,
    busy: [2],
    checkpoint: { on_busy: 'wait' },
  });
  t.strictSame(saved, ['2 periodic', '4 final']);
  t.strictSame(passed, [0, 0, 0, 0]);
});

t.test('every_seconds with one second per step', async (t) => {
  const { saved } = await run({ steps: 8, checkpoint: { every_seconds: 2 } });
  t.strictSame(saved, ['3 periodic', '6 periodic', '8 final']);
});

t.test('auto uses the cost of a save and the failure rate', async (t) => {
  const { saved } = await run({ steps: 12, checkpoint: { auto: true }, failures_per_second: 2 / 25 });
  // Five seconds for a save of one second; then saves cost nothing, and one follows each second.
  t.strictSame(saved.slice(0, 4), ['6 periodic', '8 periodic', '10 periodic', '12 final']);
});

t.test('if all snapshot buffers of any rank are in use, every rank skips the periodic save', async (t) => {
  const mine = await run({ steps: 7, every_steps: 3, busy: [3] });
  t.strictSame(mine.saved, ['6 periodic', '7 final']);
  t.equal(mine.passed[2], STEP_FLAGS.snapshots_busy);
  const theirs = await run({ steps: 7, every_steps: 3, others: { 3: STEP_FLAGS.snapshots_busy } });
  t.strictSame(theirs.saved, ['6 periodic', '7 final']);
});

t.test('the last save is never skipped', async (t) => {
  const { saved } = await run({ steps: 3, every_steps: 3, others: { 3: STEP_FLAGS.snapshots_busy } });
  t.strictSame(saved, ['3 final']);
});

t.test('a divergence reports its step, the number of skipped steps and advice', async (t) => {
  const message =
    /^step 4: no further step\. 3 steps in a row were skipped because .* finite\. Lower train\.optimizer\.lr/;
  await t.rejects(run({ steps: 9, every_steps: 100, skipped: [2, 3, 4] }), {
    code: 'diverged',
    message,
  });
  await t.rejects(run({ steps: 9, every_steps: 100, skipped: [1] }), {
    message: /^step 1: no further step\. 1 step was skipped because gradients were not finite\. Lower/,
  });
});

t.test(
  'a training whose steps are mostly skipped has diverged, on every rank and after a resume',
  async (t) => {
    const skips = { steps: 6, every_steps: 100, passed_over: [1, 2, 4, 5] };
    const failure = {
      code: 'diverged',
      message: /^step 5: 4 of the run's 6 steps were skipped .* 0\.5 allows\. Lower/,
    };
    for (const changes of [{ rank: 0 }, { rank: 1 }, { first_step: 4 }])
      await t.rejects(run({ ...skips, ...changes }), failure, JSON.stringify(changes));
    t.equal(
      (await run({ ...skips, passed_over: [1, 2, 4] })).end.step,
      6,
      'half of the steps may be skipped',
    );
    t.equal((await run({ ...skips, max_skipped_share: null })).end.step, 6);
    await t.rejects(run({ ...skips, max_skipped_share: 0 }), { code: 'diverged', message: /^step 1: 1 of/ });
    await t.rejects(run({ ...skips, empty: [1, 2, 4, 5] }), {
      code: 'no_targets',
      message: /^step 5: 4 of the run's 6 steps were skipped because no token of theirs counts as a target/,
    });
  },
);

t.test('a training whose last loss is not a number has diverged', async (t) => {
  const lost = { steps: 3, every_steps: 100, step_losses: { 3: Number.NaN } };
  await t.rejects(run(lost), { code: 'diverged', message: /^step 3, the last one: the loss is NaN\. Lower/ });
  await t.rejects(run({ ...lost, step_losses: { 3: Number.POSITIVE_INFINITY } }), { code: 'diverged' });
  t.equal((await run({ ...lost, step_losses: { 2: Number.NaN } })).end.step, 3, 'others may be overflows');
  t.equal((await run({ ...lost, empty: [3] })).end.step, 3, 'a step without targets has no loss');
  t.equal((await run({ ...lost, max_skipped_share: null })).end.step, 3);
});
