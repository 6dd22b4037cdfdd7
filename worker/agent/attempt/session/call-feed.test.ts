import { mock } from 'node:test';
import t, { type Test } from 'tap';
import type { Checkpoint } from '../../../../contracts/index.js';
import { type AgentMessage, type CallsMessage, STEP_FLAGS } from '../../../../contracts/rank-protocol.js';
import type { CompleteSave } from '../../checkpoint/save-collector.js';
import type { GenerationContext } from '../context.js';
import { StopRequests } from '../stop-requests.js';
import { CallFeed } from './call-feed.js';

const DIGEST = '0'.repeat(32);
const IDLE_SECONDS = 10;

interface Options {
  /** Calls that are stored, and those with a result. */
  appended: number;
  answered: number;
  on_busy?: 'skip' | 'wait';
}

/** Feed of a generation with two ranks, whose saves are due unless `due` is false. */
function feed(t: Test, { appended, answered, on_busy = 'wait' }: Options) {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const stops = new StopRequests();
  const lease = new AbortController();
  const told: AgentMessage[] = [];
  const stored: [number, string][] = [];
  const state = { due: true, failed: 0, latest: null as Checkpoint | null };
  const calls = {
    appended,
    answered,
    watch: () => () => undefined,
    answer: async (number: number, result: Buffer) => void stored.push([number, result.toString('utf8')]),
    checkAgain: async () => undefined,
    resultOf: async () => null,
    refuse: () => undefined,
    refusalOf: () => null,
  };
  const checkpoints = {
    get latest() {
      return state.latest;
    },
    get latestStep() {
      return state.latest?.step ?? null;
    },
    answerSave: async () => undefined,
    verifyLoad: async () => undefined,
  };
  const pace = {
    isDue: () => state.due,
    saved: () => undefined,
    notSaved: () => {
      state.failed += 1;
    },
  };
  const job = { spec: { train: { session: { idle_seconds: IDLE_SECONDS } }, checkpoint: { on_busy } } };
  const ctx = { job, stops, lease: { lost: lease.signal }, world_size: 2 } as unknown as GenerationContext;
  const control = { tell: (message: AgentMessage) => told.push(message), abandon: t.error };
  const fed = new CallFeed(ctx, { calls, checkpoints, pace, writer: null, ...control }, 0);
  t.teardown(() => fed.close());
  const ranks = [0, 1];
  return {
    fed,
    stops,
    lease,
    calls,
    state,
    stored,
    /** All ranks have run an update. */
    update: (step: number) => {
      for (const rank of ranks)
        fed.onCall(rank, { kind: 'called', number: step, step, result: null, digest_part: DIGEST });
    },
    /** All ranks have run a pass, whose result comes in parts. */
    pass: (number: number, parts: string[]) => {
      const bytes = parts.map((part) => Buffer.from(part));
      for (const part of bytes.slice(0, -1)) fed.onCall(0, { kind: 'result_part', bytes: part });
      for (const rank of ranks) {
        const result = rank === 0 ? (bytes.at(-1) ?? null) : null;
        fed.onCall(rank, { kind: 'called', number, step: 0, result, digest_part: null });
      }
    },
    /** All ranks have run a `save_state`. */
    save: (number: number, step: number) => {
      for (const rank of ranks)
        fed.onCall(rank, { kind: 'called', number, step, result: null, digest_part: null });
    },
    /** Asks for all ranks, of which the first may be busy. Returns whether they save. */
    ask: async (step: number, policy: 'periodic' | 'final', isBusy = false) => {
      for (const rank of ranks)
        fed.onCall(rank, { kind: 'save_call', step, policy, is_busy: isBusy && rank === 0 });
      await new Promise(setImmediate);
      const answer = told.findLast(({ kind }) => kind === 'save_answer');
      return answer?.kind === 'save_answer' && answer.nonce !== null;
    },
    commit: (step: number, saveRequest = 0) => {
      state.latest = { id: `ckpt_${step}`, step } as Checkpoint;
      fed.saved({ step, save_request: saveRequest, cost: { stall_seconds: 0 } } as CompleteSave);
    },
    /** Requests of the saves that were ordered. */
    ordered: () =>
      told
        .filter((message): message is CallsMessage => message.kind === 'calls')
        .filter(({ flags }) => flags === STEP_FLAGS.checkpoint)
        .map(({ save_request }) => save_request),
  };
}

t.test('one save is ordered until it has ended, also if it fails', async (t) => {
  const { fed, update, commit, ordered, state } = feed(t, { appended: 9, answered: 9 });
  fed.begin(0);
  t.strictSame(ordered(), [0]);
  for (const step of [1, 2]) update(step);
  t.strictSame(ordered(), [0], 'it is not committed yet');
  commit(1);
  t.strictSame(ordered(), [0, 0]);
  fed.notSaved(2, new Error('no space'));
  t.equal(state.failed, 1, 'the pace begins anew');
  t.strictSame(ordered(), [0, 0], 'the step has had its save');
  update(3);
  t.strictSame(ordered(), [0, 0, 0]);
});

t.test('a request is ordered once, and again at the next step if it fails', async (t) => {
  const { fed, update, commit, ordered, state } = feed(t, { appended: 9, answered: 9 });
  state.due = false;
  fed.begin(0);
  fed.control(0, 7);
  for (const step of [1, 2]) update(step);
  t.strictSame(ordered(), [7]);
  fed.notSaved(1, new Error('no space'));
  t.strictSame(ordered(), [7, 7]);
  commit(2, 7);
  update(3);
  t.strictSame(ordered(), [7, 7], 'the request is answered');
});

t.test('a request that a busy rank skips is ordered again when a save has ended', async (t) => {
  const { fed, ask, update, commit, ordered, state } = feed(t, { appended: 9, answered: 9, on_busy: 'skip' });
  state.due = false;
  fed.begin(0);
  for (const step of [1, 2]) update(step);
  fed.control(0, 7);
  t.strictSame(ordered(), [7]);
  t.equal(await ask(2, 'periodic', true), false);
  commit(1);
  t.strictSame(ordered(), [7, 7]);
});

t.test('with on_busy skip a busy rank skips a periodic save', async (t) => {
  const { fed, ask, update, ordered } = feed(t, { appended: 9, answered: 9, on_busy: 'skip' });
  fed.begin(0);
  t.equal(await ask(0, 'periodic', true), false);
  update(1);
  t.strictSame(ordered(), [0, 0], 'the next step tries again');
  t.equal(await ask(1, 'periodic'), true);
  t.equal(await ask(2, 'final', true), true, 'a call needs its save');
});

t.test('with on_busy wait a periodic save waits for an earlier one', async (t) => {
  const { fed, ask } = feed(t, { appended: 9, answered: 9 });
  fed.begin(0);
  t.equal(await ask(0, 'periodic', true), true);
});

t.test('a step is saved again only after a save that failed', async (t) => {
  const { fed, ask, commit } = feed(t, { appended: 9, answered: 9 });
  fed.begin(0);
  t.equal(await ask(1, 'periodic'), true);
  t.equal(await ask(1, 'periodic'), false, 'it is being saved');
  fed.notSaved(1, new Error('no space'));
  t.equal(await ask(1, 'final'), true);
  commit(1);
  t.equal(await ask(1, 'final'), false);
});

t.test('no time is idle in which calls are run again', async (t) => {
  const { fed, stops, update } = feed(t, { appended: 3, answered: 3 });
  fed.begin(0);
  for (const step of [1, 2, 3]) {
    mock.timers.tick(1000 * IDLE_SECONDS);
    t.equal(stops.current, null, `before call ${step}`);
    update(step);
  }
  mock.timers.tick(1000 * IDLE_SECONDS);
  t.equal(stops.current, 'idle');
});

t.test('an agent without its lease does not know whether a state is saved', async (t) => {
  const { fed, ask, save, lease, stored } = feed(t, { appended: 1, answered: 0 });
  fed.begin(0);
  await ask(0, 'final');
  save(1, 0);
  lease.abort();
  fed.notSaved(0, new Error('stale_epoch'));
  // Saves behind it wait for the result of the call.
  const calls = { number: 1, first_step: 0 } as unknown as CompleteSave['calls'];
  await t.rejects(fed.beforeCommit({ calls } as CompleteSave), { message: 'the ranks have ended' });
  await fed.close();
  t.strictSame(stored, [], 'the agent that holds it answers the call');
});

t.test('parts of a result are joined', async (t) => {
  const { fed, pass, stored } = feed(t, { appended: 2, answered: 0 });
  fed.begin(0);
  pass(1, ['{"loss"', ':', '1}']);
  pass(2, ['{"loss":2}']);
  await fed.close();
  t.strictSame(stored, [
    [1, '{"loss":1}'],
    [2, '{"loss":2}'],
  ]);
});
