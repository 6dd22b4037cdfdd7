import t from 'tap';
import { type AnswerDelta, type GeneratedText, ZerofleetError } from '../../contracts/index.js';
import { GrowingAnswer } from './growing-answer.js';

const delta = (text: string): AnswerDelta => ({ index: 0, text, logprobs: [] });
const sample = { choices: [{ ...delta('Once upon'), finish_reason: 'stop' }] } as unknown as GeneratedText;

t.test('each delta is yielded once, then the answer is returned', async (t) => {
  const growing = new GrowingAnswer();
  let end: (sample: GeneratedText) => void = () => undefined;
  const deltas = growing.deltas(new Promise<GeneratedText>((resolve) => (end = resolve)));
  growing.add([delta('On'), delta('ce')]);
  await growing.started;
  await growing.hasText;
  t.strictSame(await deltas.next(), { done: false, value: delta('On') });
  growing.add([delta(' ')]);
  t.strictSame(await deltas.next(), { done: false, value: delta('ce') });
  t.strictSame(await deltas.next(), { done: false, value: delta(' ') });
  const next = deltas.next();
  growing.add([delta('upon')]);
  t.strictSame(await next, { done: false, value: delta('upon') });
  growing.add([delta('!')]);
  end(sample);
  t.strictSame(await deltas.next(), { done: false, value: delta('!') });
  t.strictSame(await deltas.next(), { done: true, value: sample });
});

t.test('an error follows the deltas', async (t) => {
  const growing = new GrowingAnswer();
  const deltas = growing.deltas(Promise.reject(new ZerofleetError('rank_lost', 'the worker was lost')));
  growing.add([delta('Once')]);
  t.strictSame(await deltas.next(), { done: false, value: delta('Once') });
  await t.rejects(deltas.next(), { code: 'rank_lost' });
});
