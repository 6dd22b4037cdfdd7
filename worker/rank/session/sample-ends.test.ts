import { pathToFileURL } from 'node:url';
import t from 'tap';
import type { StoredCall } from '../../../contracts/index.js';
import { openObjectStore } from '../../../platform/object-store/index.js';
import type { SampledAnswer } from '../../shared/native/adapter.js';
import { startMessage, testSpec } from '../../testing/start-message.js';
import { SampleEnds } from './sample-ends.js';

/** A call over the tokenizer of bytes. */
function callOf(texts: string[]): Extract<StoredCall, { type: 'sample' }> {
  const common = { max_tokens: 9, temperature: 1, top_p: 1, top_k: 0, seed: 1, stop_tokens: [] };
  return { type: 'sample', prompts: [[...Buffer.from('x\n\nUs')], [7]], n: 2, ...common, stop_texts: texts };
}

function answerOf(text: string, finish: SampledAnswer['finish'] = 'length'): SampledAnswer {
  const tokens = Int32Array.from(Buffer.from(text));
  return { tokens, log_probs: Float32Array.from(tokens, (_, i) => -i), finish };
}

t.test('samples end at texts', async (t) => {
  const objects = await openObjectStore(pathToFileURL(t.testdir()).href);
  t.teardown(() => objects.close());
  const start = startMessage({ spec: testSpec({ train: { session: {} } }), training_files: [] });
  const ends = new SampleEnds({ objects, start });
  const cut = async (texts: string[], ...answers: SampledAnswer[]) =>
    (await ends.cut(callOf(texts), answers)).map(({ tokens, log_probs, finish }) => [
      Buffer.from(tokens).toString(),
      log_probs.length,
      finish,
    ]);

  t.strictSame(
    await cut(['\n\nUser:'], answerOf('yes\n\nUser: no'), answerOf('er: no'), answerOf('no', 'end')),
    [
      ['yes\n\nUser:', 10, 'end'],
      ['er: no', 6, 'length'],
      ['no', 2, 'end'],
    ],
    'at the token that completes the text, which no part of the prompt begins',
  );
  t.strictSame(await cut(['bc', 'b'], answerOf('abcd')), [['ab', 2, 'end']], 'at the first of several');
  t.strictSame(await cut(['é'], answerOf('aéb')), [['aé', 3, 'end']], 'a character of two tokens');
  t.strictSame(await cut(['b'], answerOf('ab')), [['ab', 2, 'end']], 'at the last token');
  t.strictSame(await cut([], answerOf('ab')), [['ab', 2, 'length']]);
});
