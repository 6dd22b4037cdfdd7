import t from 'tap';
import type { PositionedDelta, SampleMessage } from '../../../contracts/index.js';
import { ReplyWriter } from './reply-writer.js';

const usage = { prompt_tokens: 1, cached_tokens: 0, completion_tokens: 1 };
const tokens = (count: number) =>
  Array.from({ length: count }, (_, at) => ({
    token: `${at}`,
    logprob: -1,
    top: [{ token: 'x', logprob: -1 }],
  }));
const delta = (text: string, textAt: number, logprobs: PositionedDelta['logprobs'] = [], logprobsAt = 0) => ({
  index: 0,
  text,
  text_at: textAt,
  logprobs,
  logprobs_at: logprobsAt,
});
const sampleOf = (text: string, logprobs: PositionedDelta['logprobs'] = []) => ({
  prompt: 'p',
  choices: [{ index: 0, text, finish_reason: 'stop' as const, logprobs }],
  usage,
});

/** A writer whose messages are refused as the test says. */
function open(outcomes: ('full' | 'gone' | 'sent')[] = []) {
  const sent: SampleMessage[] = [];
  const stop = new AbortController();
  const store = {
    sendSampleMessage: async (_id: string, _worker: string, message: SampleMessage) => {
      const outcome = outcomes.shift() ?? 'sent';
      if (outcome === 'sent') sent.push(message);
      return outcome;
    },
  };
  const onGone = () => stop.abort();
  const writer = new ReplyWriter({ store, id: 'id', worker: 'w', signal: stop.signal, onGone });
  const deltas = () => sent.flatMap((message) => ('deltas' in message ? message.deltas : []));
  return { writer, sent, deltas, stop };
}

t.test('the end contains what was not sent, and nothing twice', async (t) => {
  const { writer, sent, deltas } = open();
  writer.sendState('loading');
  writer.sendState('answering');
  writer.add([delta('Once', 0)]);
  await writer.end({ ok: true, sample: sampleOf('Once upon') });
  t.strictSame(deltas(), [delta('Once', 0), delta(' upon', 4)]);
  const end = { prompt: 'p', choices: [{ index: 0, finish_reason: 'stop' }], usage };
  t.strictSame(sent.at(-1), { end: { ok: true, sample: end } });
});

t.test('a restarted answer is sent again completely', async (t) => {
  const { writer, deltas } = open();
  for (const text of ['Once upon', 'On']) {
    writer.sendState('answering');
    writer.add([delta(text, 0)]);
  }
  await writer.end({ ok: true, sample: sampleOf('Once upon a time') });
  t.strictSame(deltas().slice(-2), [delta('On', 0), delta('ce upon a time', 2)]);
});

t.test('messages have a bounded size, and wait while the caller has too many', async (t) => {
  const { writer, sent, deltas } = open(['sent', 'full', 'full']);
  writer.sendState('answering');
  const logprobs = tokens(5_000);
  for (const at of [0, 1, 2]) writer.add([delta('a', at, logprobs.slice(at, at + 1), at)]);
  await writer.end({ ok: true, sample: sampleOf('aaab', logprobs) });
  t.ok(
    sent.length < 20 && sent.every((message) => JSON.stringify(message).length < 100_000),
    `${sent.length}`,
  );
  t.equal(
    deltas()
      .map(({ text }) => text)
      .join(''),
    'aaab',
  );
  t.strictSame(
    deltas().flatMap((part) => part.logprobs),
    logprobs,
  );
  let at = 0;
  for (const part of deltas()) {
    t.equal(part.logprobs_at, at);
    at += part.logprobs.length;
  }
});

t.test('nothing is sent when nobody waits', async (t) => {
  const { writer, sent, stop } = open(['gone']);
  writer.sendState('answering');
  writer.add([delta('a', 0)]);
  await writer.end({ ok: false, error: { code: 'rank_lost', message: 'no' } });
  t.strictSame(sent, []);
  t.ok(stop.signal.aborted);
});
