import t from 'tap';
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { type EarlyStoppingState, type RankMessage, STEP_FLAGS } from '../../contracts/rank-protocol.js';
import { NOT_EVALUATED } from '../../spec/index.js';
import type { RankTrainer, StepResult } from '../native/adapter.js';
import { startMessage, testSpec } from '../testing/start-message.js';
import type { SaveNote, SnapshotWriter } from './snapshot-writer.js';
import { trainLoop } from './train-loop.js';

interface Script {
  steps: number;
  every_steps?: number;
  /** Other fields of `checkpoint`. */
  checkpoint?: Partial<ResolvedJobSpec['checkpoint']>;
  /** Save requests, by the step before which they arrive. */
  requests?: Record<number, number>;
  rank?: number;
  first_step?: number;
  /** Flags of the agent, by the step from which they apply. */
  agent_flags?: Record<number, number>;
  /** Flags of other ranks, by step. */
  others?: Record<number, number>;
  /** Steps before which all snapshot buffers of this rank are in use. */
  busy?: number[];
  /** Steps with non-finite gradients; at the last one the core fails. */
  skipped?: number[];
  /** Steps between evaluations; without it there is no validation data. */
  eval_every_steps?: number;
  /** Loss of the validation data by step. */
  losses?: Record<number, number>;
  /** Settings of early stopping; null without it. */
  stopping?: { patience: number; min_delta?: number } | null;
  /** State of early stopping at the first step. */
  early_stopping?: EarlyStoppingState;
  failures_per_second?: number;
}

async function run({
  steps,
  every_steps,
  rank = 0,
  first_step = 0,
  checkpoint = {},
  requests = {},
  agent_flags = {},
  others = {},
  busy = [],
  skipped = [],
  eval_every_steps,
  losses = {},
  stopping = null,
  early_stopping = NOT_EVALUATED,
  failures_per_second = 1,
}: Script) {
  const passed: number[] = [];
  const saved: string[] = [];
  const evaluated: number[] = [];
  const answered: string[] = [];
  const recorded: Record<number, number> = {};
  const states: Record<number, EarlyStoppingState | null> = {};
  const sent: RankMessage[] = [];
  let step = first_step;
  let flags = 0;
  let request = 0;
  const seconds = {
    data: 0,
    total: 1,
    forward: 0.123456789,
    backward: 0.8,
    exchange: 0,
    exchange_busy: 0,
    optimizer: 0,
    gather: 0,
  };
  const trainer = {
    async step(mine: number): Promise<StepResult> {
      step++;
      passed.push(mine);
      const stop = mine | (others[step] ?? 0);
      if (step === skipped.at(-1)) throw Object.assign(new Error('no further step'), { code: 'diverged' });
      const update = { finite: !skipped.includes(step), skipped_steps: 0, loss_scale: 64 / step };
      return {
        step,
        loss: 1,
        aux_loss: null,
        grad_norm: 1,
        lr: 1,
        trust_ratios: [],
        tokens: 1,
        ...update,
        stop,
        seconds,
        sent: { reduced: 0, gathered: 0, routed: 0 },
      };
    },
    async evaluate() {
      evaluated.push(step);
      return { loss: losses[step] ?? 2 / step, tokens: 7, sequences: 3 };
    },
    memory: () => ({ master: 8 }) as ReturnType<RankTrainer['memory']>,
  } as RankTrainer;
  const spec = testSpec({ steps });
  spec.checkpoint = {
    keep: { last: 3, best: 0 },
    on_busy: 'skip',
    ...(every_steps ? { every_steps } : {}),
    ...checkpoint,
  };
  if (eval_every_steps !== undefined) spec.train.eval_every_steps = eval_every_steps;
  if (stopping) spec.train.early_stopping = { metric: 'eval_loss', min_delta: 0, ...stopping };
  const validation_file = eval_every_steps === undefined ? null : '/validation';
  const start = startMessage({ rank, spec, validation_file, failures_per_second });
  const writer = {
    get busy() {
      return busy.includes(step + 1);
    },
    async save(_: RankTrainer, policy: unknown, { save_request, eval_loss, early_stopping }: SaveNote) {
      saved.push(`${step} ${policy === start.save.final ? 'final' : 'periodic'}`);
      if (save_request > 0) answered.push(`${save_request} at ${step}`);
      if (eval_loss !== null) recorded[step] = eval_loss;
      states[step] = early_stopping;
      return 0;
    },
  } as SnapshotWriter;
  start.save.final = { ...start.save.final };
  const end = await trainLoop({
    trainer,
    writer,
    start,
    first_step,
    early_stopping: stopping && early_stopping,
    flags: () => {
      flags = agent_flags[step + 1] ?? flags;
      return flags;
    },
    saveRequest: () => {
      request = requests[step + 1] ?? request;
      return request;
    },
    // A step takes a second.
    now: () => step,
    send: async (message) => void sent.push(message),
    onStep: () => undefined,
  });
  return { end, passed, saved, sent, evaluated, answered, recorded, states };
}

t.test('it saves every k steps and the last one with the final retry policy', async (t) => {
  const { end, saved, sent } = await run({ steps: 7, every_steps: 3 });
  t.strictSame(saved, ['3 periodic', '6 periodic', '7 final']);
  t.strictSame(end, { step: 7, flags: 0 });
  t.equal(sent.filter(({ kind }) => kind === 'stepped').length, 7);
});

t.test('a last step that is also periodic is saved once', async (t) => {
  t.strictSame((await run({ steps: 6, every_steps: 3 })).saved, ['3 periodic', '6 final']);
});

t.test('only rank 0 reports steps, but each rank its memory after the first step', async (t) => {
  const memory = { kind: 'memory', parts: { master: 8 } };
  t.strictSame((await run({ steps: 2, every_steps: 10, rank: 1 })).sent, [memory]);
  t.match((await run({ steps: 3, every_steps: 10, first_step: 1 })).sent, [memory, {}, {}]);
  t.strictSame((await run({ steps: 3, every_steps: 10, first_step: 3 })).sent, []);
});

t.test('it continues at its first step', async (t) => {
  const { saved, passed } = await run({ steps: 6, every_steps: 4, first_step: 3 });
  t.strictSame({ saved, steps: passed.length }, { saved: ['4 periodic', '6 final'], steps: 3 });
});

t.test('it evaluates every k steps and after the last, on every rank; rank 0 reports', async (t) => {
  const options = { steps: 7, every_steps: 100, eval_every_steps: 3 };
  const { sent, evaluated } = await run(options);
  t.strictSame(evaluated, [3, 6, 7]);
  const stepped = sent.flatMap((message) => (message.kind === 'stepped' ? [message] : []));
  t.strictSame(
    stepped.map(({ evaluation }) => evaluation?.loss ?? null),
    [null, null, 2 / 3, null, null, 2 / 6, 2 / 7],
  );
  const phases = { data: 0, forward: 0.123457, backward: 0.8, exchange: 0, optimizer: 0, gather: 0 };
  t.strictSame(stepped[0]?.seconds, { total: 1, ...phases });
  t.match(stepped[2]?.evaluation, { tokens: 7, sequences: 3, seconds: Number });
  t.strictSame((await run({ ...options, rank: 1 })).evaluated, [3, 6, 7]);
  t.strictSame((await run({ ...options, first_step: 4 })).evaluated, [6, 7], 'the same steps after a resume');
  t.strictSame((await run({ steps: 3, every_steps: 100 })).evaluated, []);
});

t.test('a save after an evaluated step has its loss, on every rank', async (t) => {
  for (const rank of [0, 1]) {
    const { recorded } = await run({ steps: 7, every_steps: 2, eval_every_steps: 3, rank });
    t.strictSame(recorded, { 6: 2 / 6, 7: 2 / 7 }, 'none of steps 2 and 4');
  }
});

const STOPPING: Script = {
  steps: 20,
  every_steps: 100,
  eval_every_steps: 2,
  losses: { 2: 4, 4: 3, 6: 2.5, 8: 3, 10: 2.5, 12: 2.75, 14: 1 },
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

t.test('early stopping continues with the state of a checkpoint', async (t) => {
  for (const first_step of [6, 7, 9, 10, 11]) {
    const evaluations_without_improvement = Math.floor(first_step / 2) - 3;
    const early_stopping = { best_eval_loss: 2.5, best_step: 6, evaluations_without_improvement };
    const { end, saved } = await run({ ...STOPPING, first_step, early_stopping });
    t.strictSame({ end, saved }, { end: { step: 12, flags: 0 }, saved: ['12 final'] }, `from ${first_step}`);
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
  const options = { steps: 9, every_steps: 100, eval_every_steps: 4 };
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

t.test('a divergence reports its step, the scale, the number of skipped steps and advice', async (t) => {
  const message =
    /^step 4: no further step\. 3 steps in a row were skipped .* a loss scale of 21\.3.*\. Lower train\.optimizer\.lr/;
  await t.rejects(run({ steps: 9, every_steps: 100, skipped: [2, 3, 4] }), {
    code: 'diverged',
    message,
  });
  await t.rejects(run({ steps: 9, every_steps: 100, skipped: [1] }), {
    message: /^step 1: no further step\. 1 step was skipped because gradients were not finite\. Lower/,
  });
});
