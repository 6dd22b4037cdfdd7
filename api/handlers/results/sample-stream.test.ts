import t from 'tap';
import type { PlacedDelta, Sample, SampleReply } from '../../../contracts/index.js';
import { SampleStream } from './sample-stream.js';

const delta = (text: string, text_at: number, logprob = -1): PlacedDelta => ({
  index: 0,
  text,
  text_at,
  logprobs: [...text].map((token) => ({ token, logprob, top: [] })),
  logprobs_at: text_at,
});

/** The events of a stream that gets these deltas and then this text. */
async function eventsOf(deltas: readonly PlacedDelta[], text: string) {
  const stream = new SampleStream('req_1');
  const { logprobs } = delta(text, 0);
  const sample = { choices: [{ index: 0, text, logprobs, finish_reason: 'length' }] } as unknown as Sample;
  const reply = { ok: true, sample } as unknown as SampleReply;
  stream.add(deltas);
  const events: { event: string; data: { text?: string; code?: string } }[] = [];
  for await (const message of stream.messages(Promise.resolve(reply), () => sample)) {
    const [, event = '', data = ''] = /^event: (.*)\ndata: (.*)\n\n$/.exec(message) ?? [];
    events.push({ event, data: JSON.parse(data) });
  }
  const told = events.flatMap(({ event, data }) => (event === 'delta' ? [data.text] : [])).join('');
  return { told, last: events.at(-1) };
}

t.test('a worker that takes over tells what is new', async (t) => {
  const { told, last } = await eventsOf(
    [delta('Once', 0), delta('On', 0), delta('ce upon', 2)],
    'Once upon a time',
  );
  t.equal(told, 'Once upon a time');
  t.equal(last?.event, 'end');
});

t.test('other text, or other bits of its tokens, end the stream with an error', async (t) => {
  for (const other of [delta('Twice', 0), delta('Once upon', 0, -1.5)]) {
    const { last } = await eventsOf([delta('Once', 0), other], 'Once upon a time');
    t.match(last, { event: 'error', data: { code: 'rank_lost', message: undefined } });
  }
  const { told, last } = await eventsOf([delta('Once', 0)], 'Twice');
  t.equal(told, 'Once');
  t.match(last, { event: 'error', data: { code: 'rank_lost' } }, 'the end contradicts as well');
});
