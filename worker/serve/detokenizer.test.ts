import t from 'tap';
import { BytesTokenizer } from '../../platform/encoding/bytes-tokenizer.js';
import { Detokenizer } from './detokenizer.js';

const bytes = (text: string) => [...Buffer.from(text)];

t.test('a character appears when all of its bytes are there', async (t) => {
  const decoder = new Detokenizer(new BytesTokenizer(), bytes('prompt'));
  t.strictSame(
    bytes('aé€😀').map((token) => decoder.push(token)),
    ['a', '', 'é', '', '', '€', '', '', '', '😀'],
  );
  t.equal(decoder.end(), '');
});

t.test('bytes that are no character appear as U+FFFD, at the latest at the end', async (t) => {
  const decoder = new Detokenizer(new BytesTokenizer(), []);
  const texts = [0x80, 0x80, 0x80, 0x80, 0x61, 0xe2, 0x82].map((token) => decoder.push(token));
  t.equal(texts.slice(0, 3).join(''), '');
  t.match(texts[3], /^\uFFFD+$/);
  t.equal(texts[4], 'a');
  t.equal(texts.slice(5).join(''), '');
  t.match(decoder.end(), /^\uFFFD+$/);
  t.equal(decoder.end(), '');
});

t.test('tokens are decoded behind those before them', async (t) => {
  // The first word of a text loses its space, as with many tokenizers.
  const tokenizer = {
    decodeAfter: (before: readonly number[], tokens: readonly number[]) => {
      const text = tokens.map((token) => ` w${token}`).join('');
      return before.length === 0 ? text.trimStart() : text;
    },
  };
  const behind = new Detokenizer(tokenizer, [7]);
  t.equal(behind.push(1) + behind.push(2), ' w1 w2');
  t.equal(behind.textOf(3), ' w3');
  const first = new Detokenizer(tokenizer, []);
  t.equal(first.push(1) + first.push(2), 'w1 w2');
});
