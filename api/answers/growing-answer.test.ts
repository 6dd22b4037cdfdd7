import t from 'tap';
import { type Sample, type SampleDelta, type SampleReply, ZerofleetError } from '../../../contracts/index.js';
import { SampleStream } from './sample-stream.js';

const tokensOf = (text: string) => [...text].map((token) => ({ token, logprob: -1, top: [] }));
const delta = (text: string): SampleDelta => ({ index: 0, text, logprobs: tokensOf(text) });
const sample = { choices: [{ ...delta('Once upon'), finish_reason: 'length' }] } as unknown as Sample;

/** The events of a stream that gets these deltas and then this answer. */
async function eventsOf(deltas: readonly SampleDelta[], answer: Promise<SampleReply>) {
  const stream = new SampleStream('req_1');
  stream.add(deltas);
  const events: [string, unknown][] = [];
  for await (const message of stream.messages(answer, () => sample)) {
    const [, event = '', data = ''] = /^event: (.*)\ndata: (.*)\n\n$/.exec(message) ?? [];
    events.push([event, JSON.parse(data)]);
  }
  return events;
}

t.test('each part of the texts is told once, and the end has none', async (t) => {
  const answer = Promise.resolve({ ok: true, sample } as unknown as SampleReply);
  const end = ['end', { choices: [{ index: 0, finish_reason: 'length' }] }];
  const told = [delta('Once'), delta(' '), delta('upon')];
  t.strictSame(await eventsOf(told, answer), [...told.map((some) => ['delta', some]), end]);
  t.strictSame(await eventsOf([delta('Once')], answer), [
    ['delta', delta('Once')],
    ['delta', delta(' upon')],
    end,
  ]);
});

t.test('an error follows the texts that were told', async (t) => {
  const failed = Promise.reject(new ZerofleetError('rank_lost', 'the worker was lost'));
  failed.catch(() => undefined);
  const [told, last] = await eventsOf([delta('Once')], failed);
  t.strictSame(told, ['delta', delta('Once')]);
  t.match(last, ['error', { code: 'rank_lost' }]);
});
