import t from 'tap';
import { BytesTokenizer } from '../../../formats/encoding/bytes-tokenizer.js';
import { HfTokenizer } from '../../../formats/encoding/hf-tokenizer.js';
import { TINY_TOKENIZER } from '../../../formats/testing/models.js';
import { Detokenizer } from './detokenizer.js';

const bytes = (text: string) => [...Buffer.from(text)];

/** Byte tokens, pieces of byte-level tokenizers with whole and with cut characters, and words of other kinds. */
const PIECES = [
  ...['E5', 'BF', '81', 'F0', '9F', '98', '80', 'C3', 'FF', '0A'].map((byte) => `<0x${byte}>`),
  ...['å', 'Ł', '¿', 'åŁ', 'ģ', 'ģå', 'ðŁ', 'ĺ', 'Ģ', 'Ã©Ã', 'Ċ', 'Ġa', 'a'],
  ...['\u2581', '\u2581the', 're', '##ing', '.', "'s", '--', 'lo</w>'],
];
const SPECIAL = PIECES.length;
const idOf = (piece: string) => PIECES.indexOf(piece);

/** A tokenizer of these pieces, one special token and ids without a token. */
function tokenizerWith(decoder: object | null): HfTokenizer {
  const file = {
    ...TINY_TOKENIZER,
    decoder,
    added_tokens: [{ id: SPECIAL, content: '</s>', special: true }],
    model: { type: 'BPE', vocab: Object.fromEntries(PIECES.map((piece, id) => [piece, id])), merges: [] },
  };
  return new HfTokenizer({ tokenizer: JSON.stringify(file), config: null, special_tokens_map: null }, false);
}

const LLAMA = {
  type: 'Sequence',
  decoders: [
    { type: 'Replace', pattern: { String: '\u2581' }, content: ' ' },
    { type: 'ByteFallback' },
    { type: 'Fuse' },
    { type: 'Strip', content: ' ', start: 1, stop: 0 },
  ],
};
const BYTE_LEVEL = { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true };

t.test('a character appears when all of its bytes are there', async (t) => {
  const decoder = new Detokenizer(new BytesTokenizer(), bytes('prompt'));
  t.strictSame(
    bytes('aé€😀').map((token) => decoder.push(token)),
    ['a', '', 'é', '', '', '€', '', '', '', '😀'],
  );
  t.equal(decoder.end(), '');
});

t.test('bytes that are no character appear as U+FFFD, at the latest at the end', async (t) => {
  const all = [0x80, 0x80, 0x80, 0x80, 0x61, 0xe2, 0x82];
  const decoder = new Detokenizer(new BytesTokenizer(), []);
  const texts = all.map((token) => decoder.push(token));
  t.equal(texts.slice(0, 5).join(''), `${'\uFFFD'.repeat(4)}a`);
  t.equal(texts.slice(5).join(''), '');
  t.equal(decoder.end(), '\uFFFD');
  t.equal(decoder.end(), '');
});

t.test('bytes are decoded together, however many there are', async (t) => {
  const decoder = new Detokenizer(tokenizerWith(LLAMA), [idOf('\u2581the')]);
  const run = ['F0', '9F', '98', '80', 'E5', 'BF', '81'].map((byte) => idOf(`<0x${byte}>`));
  t.equal(run.map((token) => decoder.push(token)).join(''), '');
  t.equal(decoder.push(SPECIAL), '');
  t.equal(decoder.push(idOf('re')), '😀忁re');
  t.equal(
    run
      .slice(0, 3)
      .map((token) => decoder.push(token))
      .join('') + decoder.end(),
    '\uFFFD'.repeat(3),
  );
});

t.test('tokens of which each ends inside a character', async (t) => {
  const decoder = new Detokenizer(tokenizerWith(BYTE_LEVEL), []);
  const tokens = [idOf('Ã©Ã'), ...Array<number>(200).fill(idOf('Ã©Ã'))];
  const texts = tokens.map((token) => decoder.push(token));
  t.equal(texts.slice(0, 2).join('|'), 'é|\uFFFDé', 'whole characters are not held back');
  t.equal(texts.join('') + decoder.end(), `${'é\uFFFD'.repeat(201)}`);
});

t.test(
  'the pieces, and the bytes of the tokens, add up to the text of all tokens decoded together',
  async (t) => {
    const decoders = [
      null,
      LLAMA,
      BYTE_LEVEL,
      { type: 'BPEDecoder', suffix: '</w>' },
      { type: 'Metaspace', replacement: '\u2581', prepend_scheme: 'always', split: true },
      { type: 'WordPiece', prefix: '##', cleanup: true },
    ];
    // A prompt ends with a whole character.
    const ends = [['a'], ['re'], ['re', '<0xE5>', '<0xBF>', '<0x81>']].map((end) => end.map(idOf));
    let state = 1;
    const random = (below: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    for (const decoder of decoders) {
      const tokenizer = tokenizerWith(decoder);
      const different: object[] = [];
      let numWhole = 0;
      for (let round = 0; round < 100; round++) {
        // Few pieces in every other round, so that there are whole characters, and long texts without one.
        const first = random(PIECES.length);
        const some = 1 + random(round % 2 === 0 ? 8 : PIECES.length + 2);
        const draw = (length: number) =>
          Array.from({ length }, () => (first + random(some)) % (PIECES.length + 2));
        const prompt = round % 4 === 0 ? [] : [...draw(random(20)), ...(ends[round % ends.length] ?? [])];
        const tokens = draw(random(120));
        const detokenizer = new Detokenizer(tokenizer, prompt);
        const bytes: number[] = [];
        const push = (token: number) => {
          const described = detokenizer.describe(token);
          bytes.push(...(described.bytes ?? Buffer.from(described.token)));
          return detokenizer.push(token);
        };
        const text = tokens.map(push).join('') + detokenizer.end();
        const whole = tokenizer.decodeAfter(prompt, tokens);
        // A whole run of byte tokens becomes U+FFFD if it is not UTF-8.
        const joined = Buffer.from(bytes).toString();
        const isJoined = joined === text || (text.includes('\uFFFD') && decoder !== BYTE_LEVEL);
        if (text !== whole || !isJoined) different.push({ prompt, tokens, text, whole, joined });
        numWhole += text.includes('\uFFFD') ? 0 : 1;
      }
      t.strictSame(different, [], JSON.stringify(decoder));
      t.ok(numWhole > 0, 'some texts have only whole characters');
    }
  },
);

t.test('tokens are decoded in the context of the tokens before them', async (t) => {
  // The first word of a text loses its space, as with many tokenizers.
  const tokenizer = tokenizerWith(LLAMA);
  const the = idOf('\u2581the');
  const afterPrompt = new Detokenizer(tokenizer, [idOf('re'), ...Array<number>(20).fill(SPECIAL)]);
  t.equal(afterPrompt.push(the) + afterPrompt.push(the), ' the the');
  t.same(afterPrompt.describe(the), { token: ' the' });
  const first = new Detokenizer(tokenizer, []);
  t.equal(first.push(the) + first.push(the), 'the the');
});

t.test('a text that ends with many bytes is decoded behind the last of them', async (t) => {
  const tokenizer = tokenizerWith(LLAMA);
  const character = ['E5', 'BF', '81'].map((byte) => idOf(`<0x${byte}>`));
  let longest = 0;
  const decodeAfter: typeof tokenizer.decodeAfter = (before, tokens) => {
    longest = Math.max(longest, before.length + tokens.length);
    return tokenizer.decodeAfter(before, tokens);
  };
  const textKind = (token: number) => tokenizer.textKind(token);
  const prompt = Array<number[]>(10_000).fill(character).flat();
  const bytesAfter: typeof tokenizer.bytesAfter = (before, token) => tokenizer.bytesAfter(before, token);
  const decoder = new Detokenizer({ decodeAfter, textKind, bytesAfter }, prompt);
  t.same(decoder.describe(idOf('<0x0A>')), { token: '\n' });
  t.same(decoder.describe(idOf('<0xE5>')), { token: '\uFFFD', bytes: [0xe5] });
  for (const token of character) t.equal(decoder.push(token), '');
  t.equal(decoder.push(idOf('re')), '忁re');
  t.ok(longest <= 70, `${longest} were decoded at once`);
});
