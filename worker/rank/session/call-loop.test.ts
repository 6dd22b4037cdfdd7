import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import type { StoredCall } from '../../../contracts/index.js';
import {
  type CallsMessage,
  type RankMessage,
  type SaveCallMessage,
  STEP_FLAGS,
} from '../../../contracts/rank-protocol.js';
import { callText } from '../../../formats/calls/call-log.js';
import { callKey } from '../../../formats/checkpoint/layout.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import { fakeCore } from '../../testing/fake-core.js';
import { FINISH, PASS, SAVE, UPDATE } from '../../testing/session-calls.js';
import { startMessage, testSpec } from '../../testing/start-message.js';
import { Inbox } from '../channel.js';
import { positionAfterRestore } from '../position.js';
import type { SaveNote } from '../snapshot-writer.js';
import { trainedState } from '../trained-state.js';
import { trainerConfig } from '../trainer-config.js';
import { callLoop } from './call-loop.js';

/** Results as the agent reads them: null for each call without one. */
function resultsOf(sent: readonly RankMessage[]) {
  const results: unknown[] = [];
  let parts: Uint8Array[] = [];
  for (const message of sent) {
    if (message.kind === 'result_part') parts.push(message.bytes);
    if (message.kind !== 'called') continue;
    const { result } = message;
    results.push(result && JSON.parse(Buffer.concat([...parts, result]).toString('utf8')));
    parts = [];
  }
  return results;
}

interface Session {
  calls: readonly StoredCall[];
  /** Messages of the agent; by default one for all calls, and a pause. */
  orders?: Partial<CallsMessage>[];
  rank?: number;
  every_steps?: number;
  /** The agent's answer to a `save_call`, by default a nonce for each. */
  nonceOf?: (message: SaveCallMessage) => string | null;
  /** Whether the rank holds all of its snapshots. */
  busy?: boolean;
}

/** Runs a session with the fake core. Returns its messages and the saves. */
async function run(t: Test, session: Session) {
  const { calls, orders, rank = 0, every_steps = 100, nonceOf = () => 'n', busy = false } = session;
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  const spec = testSpec({ train: { session: {} }, every_steps });
  const start = startMessage({ spec, rank, training_files: [] });
  for (const [i, call] of calls.entries())
    await objects.put(callKey(start.job_id, i + 1), Buffer.from(callText(call)));
  const config = { ...trainerConfig(start), rank: 0 };
  const trainer = fakeCore().createTrainer(config, (key, value) => trainer.deliver(key, value));
  await trainer.initialize();
  const sent: RankMessage[] = [];
  const channel = {
    send: async (message: RankMessage) => {
      sent.push(message);
      if (message.kind === 'save_call')
        inbox.saveAnswers.put({ kind: 'save_answer', nonce: nonceOf(message) });
    },
    onMessage: () => undefined,
    onDisconnect: () => undefined,
  };
  const inbox = new Inbox(channel);
  const pause = [{ until: calls.length }, { until: calls.length, flags: STEP_FLAGS.pause }];
  for (const order of orders ?? pause)
    inbox.calls.put({ kind: 'calls', until: 0, answered: 0, flags: 0, save_request: 0, ...order });
  const saves: SaveNote[] = [];
  const save = async (_: unknown, __: unknown, note: SaveNote) => saves.push(note);
  const end = await callLoop({
    channel,
    inbox,
    start,
    objects,
    trainer,
    state: trainedState(fakeCore(), config, spec),
    writer: { save, busy },
    begun: {
      at: positionAfterRestore(null, spec.train.loss_scale),
      calls: { number: 0, tokens: 0 },
    },
    onStep: () => undefined,
  });
  const called = sent.flatMap((message) => (message.kind === 'called' ? [message] : []));
  const results = resultsOf(sent);
  return {
    end,
    sent,
    called,
    results,
    saves: saves.map(({ calls, save_request, nonce }) => ({ ...calls, save_request, nonce })),
  };
}

t.test('calls run in their order, and rank 0 has their results', async (t) => {
  const calls = [PASS, PASS, UPDATE];
  const { end, results, called, sent } = await run(t, { calls });
  t.strictSame(end, { step: 1, flags: STEP_FLAGS.pause });
  const pass = { loss: 2, num_targets: 2, log_probs: [[-1, -1, null]], metrics: {} };
  t.strictSame(results, [pass, pass, { step: 1, grad_norm: 1, lr: 0.5, finite: true }]);
  t.strictSame(
    called.map(({ number, step, digest_part }) => [number, step, digest_part !== null]),
    [
      [1, 0, false],
      [2, 0, false],
      [3, 1, true],
    ],
  );
  t.match(
    sent.find(({ kind }) => kind === 'stepped'),
    { step: 1, loss: 1, tokens: 6, total_tokens: 6 },
    'the loss of a step is the mean over its targets',
  );
  const other = await run(t, { calls, rank: 1 });
  t.strictSame(other.results, [null, null, null]);
  t.equal(other.called[2]?.digest_part, called[2]?.digest_part, 'other ranks have their share of the digest');
});

t.test('a save has the calls that its state includes, without pending gradients', async (t) => {
  const pause = { flags: STEP_FLAGS.pause };
  const saves = async (calls: StoredCall[]) =>
    (await run(t, { calls, orders: [{ until: calls.length, ...pause }] })).saves;
  const note = { save_request: 0, nonce: 'n' };
  t.strictSame(await saves([PASS, UPDATE]), [{ number: 2, tokens: 3, ...note }]);
  t.strictSame(await saves([PASS, UPDATE, PASS]), [{ number: 2, tokens: 3, ...note }]);
  t.strictSame(await saves([PASS, UPDATE, { ...PASS, type: 'forward' }]), [
    { number: 3, tokens: 3, ...note },
  ]);
  t.strictSame(await saves([PASS, UPDATE, PASS, UPDATE]), [{ number: 4, tokens: 6, ...note }]);
});

t.test('save_state and finish are not part of the save that they make', async (t) => {
  const calls = [PASS, UPDATE, SAVE, SAVE, PASS, UPDATE, FINISH];
  const asked: SaveCallMessage[] = [];
  // As the agent answers when the first save fails on another rank.
  const nonceOf = (message: SaveCallMessage) => {
    asked.push(message);
    return asked.length === 3 ? null : `n${asked.length}`;
  };
  const { saves, results, end } = await run(t, { calls, nonceOf, busy: true });
  t.strictSame(
    saves.map(({ number, nonce }) => [number, nonce]),
    [
      [2, 'n1'],
      [3, 'n2'],
    ],
    'the agent decides which saves begin',
  );
  const save = { kind: 'save_call', policy: 'final', is_busy: true };
  t.strictSame(asked, [
    { ...save, step: 1 },
    { ...save, step: 1 },
    { ...save, step: 2 },
  ]);
  t.strictSame([results[2], results[3], results[6]], [null, null, null], 'their result is the checkpoint');
  t.strictSame(end, { step: 2, flags: 0 });
});

t.test('periodic saves follow the updates, and a requested one the calls before it', async (t) => {
  const calls = [PASS, UPDATE, PASS, UPDATE, PASS, UPDATE];
  t.strictSame(
    (await run(t, { calls, every_steps: 2 })).saves.map(({ number }) => number),
    [4, 6],
  );
  const orders = [
    { until: 2, flags: STEP_FLAGS.checkpoint, save_request: 7 },
    { until: 6, flags: STEP_FLAGS.cancel },
  ];
  const asked: SaveCallMessage[] = [];
  const nonceOf = (message: SaveCallMessage) => {
    asked.push(message);
    return 'n';
  };
  const { saves, end } = await run(t, { calls, orders, nonceOf });
  t.strictSame(saves, [{ number: 2, tokens: 3, save_request: 7, nonce: 'n' }]);
  t.match(asked, [{ policy: 'periodic', is_busy: false }], 'no rank waits for it');
  t.strictSame(end, { step: 3, flags: STEP_FLAGS.cancel }, 'a cancelled session saves nothing');
});

t.test('a call that cannot be done is answered with its error', async (t) => {
  const { results, called, end } = await run(t, { calls: [UPDATE, PASS, SAVE, UPDATE, UPDATE] });
  t.match(results[0], { error: { code: 'no_gradients' } });
  t.match(results[2], { error: { code: 'gradients_pending' } });
  t.match(results[3], { step: 1 }, 'the gradients stay');
  t.match(results[4], { error: { code: 'no_gradients' } });
  t.strictSame(
    called.map(({ digest_part }) => digest_part !== null),
    [false, false, false, true, false],
  );
  t.equal(end.step, 1);
});

t.test('calls with results run again if they change the state, and have no second result', async (t) => {
  const calls: StoredCall[] = [PASS, { ...PASS, type: 'forward' }, UPDATE, SAVE, PASS];
  const { results, called, saves } = await run(t, {
    calls,
    orders: [{ until: 5, answered: 4, flags: STEP_FLAGS.cancel }],
  });
  t.strictSame(
    results.map((result) => result !== null),
    [false, false, false, false, true],
  );
  t.ok(called[2]?.digest_part, 'the digest is compared');
  t.strictSame(saves, [], 'save_state is not repeated');
});

t.test('a large result comes in parts', async (t) => {
  const tokens = Array<number>(500_000).fill(1);
  const { sent, results } = await run(t, { calls: [{ ...PASS, rows: [{ tokens, targets: tokens }] }] });
  const parts = sent.flatMap((message) => (message.kind === 'result_part' ? [message.bytes] : []));
  t.ok(parts.length > 0);
  t.ok(parts.every(({ length }) => length <= 2 ** 20));
  const [result] = results as { log_probs: number[][] }[];
  t.equal(result?.log_probs[0]?.length, tokens.length);
});
