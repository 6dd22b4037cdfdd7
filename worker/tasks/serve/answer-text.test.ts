import t from 'tap';
import { BytesTokenizer } from '../../../formats/encoding/bytes-tokenizer.js';
import type { DrawnToken } from '../../shared/native/adapter.js';
import { AnswerText } from './answer-text.js';

const drawn = (text: string, end: DrawnToken['finish'] = null): DrawnToken[] =>
  [...Buffer.from(text)].map((token, index, all) => ({
    id: 1,
    token,
    logprob: -index,
    top: [{ token: 0x61, logprob: -0.5 }],
    finish: index === all.length - 1 ? end : null,
    cached_tokens: 0,
  }));

const answer = (stop: string[] = [], logprobs = false) =>
  new AnswerText(new BytesTokenizer(), { index: 2, prompt: [], stop, call_format: null, logprobs });

function deltasOf(text: AnswerText, tokens: DrawnToken[]): string {
  let all = '';
  for (const token of tokens) {
    text.push(token);
    const delta = text.delta();
    t.equal(delta?.text_at ?? all.length, all.length);
    all += delta?.text ?? '';
    if (text.finishReason !== null) break;
  }
  return all;
}

t.test('the text grows to its end', async (t) => {
  const text = answer();
  t.equal(deltasOf(text, drawn('héllo', 'length')), 'héllo');
  t.match(text.choice(), { index: 2, text: 'héllo', finish_reason: 'length', logprobs: [] });
  t.equal(text.numTokens, 6);
  t.equal(text.delta(), null);
});

t.test('the end token has no text', async (t) => {
  const text = answer([], true);
  t.equal(deltasOf(text, drawn('yes!', 'end')), 'yes');
  t.match(text.choice(), { text: 'yes', finish_reason: 'stop' });
  t.equal(text.numTokens, 4);
  t.equal(text.choice().logprobs.length, 3);
});

t.test('a possible stop string is held back, and returned if the text continues differently', async (t) => {
  const text = answer(['###', '\nUser:']);
  t.equal(deltasOf(text, drawn('a #b\nUse## it\nUser: no')), 'a #b\nUse## it');
  t.match(text.choice(), { text: 'a #b\nUse## it', finish_reason: 'stop' });
  const cut = answer(['###']);
  t.equal(deltasOf(cut, drawn('a##', 'length')), 'a##', 'nothing is held back at the end');
  const early = answer(['ab', 'b']);
  t.equal(deltasOf(early, drawn('xab')), 'x', 'the first one ends it');
});

t.test('a stop string in text that was not returned yet', async (t) => {
  const text = answer(['lo']);
  for (const token of drawn('hello there')) if (text.finishReason === null) text.push(token);
  t.match(text.delta(), { text_at: 0, text: 'hel' });
  t.equal(text.finishReason, 'stop');
});

t.test('log-probabilities', async (t) => {
  const text = answer([], true);
  for (const token of drawn('hé', 'length')) text.push(token);
  const [h, first] = text.choice().logprobs;
  t.strictSame(h, { token: 'h', logprob: 0, top: [{ token: 'a', logprob: -0.5 }] });
  t.equal(first?.token, '\uFFFD', 'a part of a character');
  t.match(text.delta(), { logprobs_at: 0, logprobs: { length: 3 } });
});
