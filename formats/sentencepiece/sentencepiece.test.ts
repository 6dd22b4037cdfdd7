// Compares converted models with the results of SentencePiece (golden/make_golden_sentencepiece.py).
import t from 'tap';
import {
  sentencepieceModel as bytesOf,
  sentencepiecePiece as piece,
  protoField,
  SENTENCEPIECE_GOLDEN,
} from '../testing/sentencepiece.js';
import { Tokenizer } from '../tokenizer/tokenizer.js';
import { convertSentencepiece } from './tokenizer-file.js';

const NAME = 'tokenizer.model';
const NO_DOCUMENTS = { config: {}, special_tokens_map: {}, added_tokens: {} };
const convert = (bytes: Uint8Array, documents: object = {}) =>
  convertSentencepiece(NAME, bytes, { ...NO_DOCUMENTS, ...documents });

const REFUSED: Readonly<Record<string, RegExp>> = {
  word: /model type word, which is not supported/,
  char: /model type char, which is not supported/,
  suffix: /treat_whitespace_as_suffix/,
  symbol_in_rules: /user-defined symbol "\\n", which its normalizer changes/,
};

for (const [name, { texts }] of Object.entries(SENTENCEPIECE_GOLDEN))
  t.test(name, async (t) => {
    const refused = REFUSED[name];
    if (refused) {
      t.throws(() => convert(bytesOf(name)), { code: 'tokenizer_invalid', message: refused });
      return;
    }
    // As it is stored.
    const tokenizer = new Tokenizer(JSON.parse(JSON.stringify(convert(bytesOf(name)).tokenizer)));
    for (const { text, ids, known, prefixes, decoded } of texts) {
      const title = JSON.stringify(text).slice(0, 60);
      // A text that is one user-defined symbol gets no space before it.
      const expected = name.endsWith('_symbols') && text === '<t>' ? ids.slice(1) : ids;
      t.strictSame(tokenizer.encode(text, 'text'), expected, title);
      t.equal(tokenizer.decoder.decode(known), decoded, `${title}, decoded`);
      for (const [count, prefix] of (prefixes ?? []).entries()) {
        // A run of bytes that ends inside of a character is not comparable: its text changes with the next token.
        if (prefix.includes('\ufffd')) continue;
        const [before, rest] = [known.slice(0, count), known.slice(count)];
        t.equal(tokenizer.decoder.decode(before), prefix, `${title}, ${count} tokens`);
        t.equal(prefix + tokenizer.decoder.decodeAfter(before, rest), decoded, `${title}, after ${count}`);
      }
    }
  });

t.test('special tokens of the model and of the folder', async (t) => {
  const names = convert(bytesOf('bpe_other_names'));
  t.strictSame(names.special_tokens_map, {
    bos_token: '<bos>',
    eos_token: '<eos>',
    pad_token: '<pad>',
    unk_token: '<oov>',
  });
  t.strictSame(new Tokenizer(names.tokenizer).around, { before: [2], after: [] });
  const around = (config: object) =>
    new Tokenizer(convert(bytesOf('bpe_other_names'), { config }).tokenizer).around;
  t.strictSame(around({ add_bos_token: false, add_eos_token: true }), { before: [], after: [1] });

  const behind = (config: object) => {
    const tokenizer = new Tokenizer(convert(bytesOf('bpe_symbols'), { config }).tokenizer);
    const [the, spaced] = ['the', 'x the'].map((text) => tokenizer.encode(text, 'text').at(-1));
    t.equal(the, spaced, 'a text begins with a space');
    return tokenizer.encode('<s>the<t>the', 'parsed').filter((id) => id === the).length;
  };
  t.equal(behind({}), 1, 'a special token is followed by one, a user-defined symbol is not');
  t.equal(behind({ legacy: true }), 1);
  t.equal(behind({ legacy: false }), 0);

  const { length } = new Tokenizer(names.tokenizer).added;
  const size = (names.tokenizer.model as { vocab: object }).vocab;
  const next = Object.keys(size).length;
  const config = {
    additional_special_tokens: ['<|b|>'],
    added_tokens_decoder: {
      2: { content: '<bos>', special: true, normalized: true },
      [next + 1]: { content: '<|a|>', special: true, rstrip: true },
    },
  };
  const more = convert(bytesOf('bpe_other_names'), { config, added_tokens: { '<|b|>': next } });
  const tokenizer = new Tokenizer(more.tokenizer);
  t.equal(tokenizer.added.length, length + 2);
  t.match(tokenizer.added.slice(-2), [
    { id: next, content: '<|b|>', special: true, rstrip: false },
    { id: next + 1, content: '<|a|>', special: true, rstrip: true },
  ]);
  t.strictSame(tokenizer.encode('<bos><|a|> the<|b|>', 'parsed'), [
    2,
    next + 1,
    ...tokenizer.encode('the', 'text'),
    next,
  ]);
  t.throws(
    () =>
      convert(bytesOf('bpe_other_names'), { config: { added_tokens_decoder: { 7: { content: '<bos>' } } } }),
    /has the id 2 for "<bos>", and the folder's added tokens have 7/,
  );
  t.throws(
    () => convert(bytesOf('bpe_other_names'), { config: { added_tokens_decoder: { 9000: {} } } }),
    /lacks the text of token 9000 in added_tokens_decoder/,
  );
});

t.test('a file that is no model, or contradicts itself, is refused', async (t) => {
  const refused = (bytes: Uint8Array, message: RegExp) =>
    t.throws(() => convert(bytes), { code: 'tokenizer_invalid', message, details: { file: NAME } });
  const unknown = piece('<unk>', 2);
  const bpe = protoField(2, Buffer.of(24, 2));
  t.doesNotThrow(() => convert(Buffer.concat([unknown, piece('a'), bpe])));
  refused(Buffer.alloc(0), /it has no pieces/);
  refused(Buffer.from('{"model": {}}'), /^tokenizer.model is no readable SentencePiece model/);
  refused(Buffer.of(10, 200, 1), /a field is cut short/);
  refused(Buffer.of(10, ...Array<number>(11).fill(255)), /a number has more than 10 bytes/);
  refused(bytesOf('bpe_llama').subarray(0, -3), /is cut short/);
  refused(Buffer.concat([unknown, piece('')]), /the text of piece 1 must have 1 to 1024 bytes/);
  refused(
    Buffer.concat([unknown, protoField(1, protoField(1, Buffer.of(255)))]),
    /the text of field 1 is not UTF-8/,
  );
  refused(Buffer.concat([unknown, piece('a', 9)]), /piece 1 has the unknown type 9/);
  refused(Buffer.concat([unknown, piece('a', 1, Number.NaN)]), /the score of piece 1 is NaN/);
  refused(Buffer.concat([unknown, piece('a'), piece('a')]), /has the piece "a" twice/);
  refused(piece('a'), /has 0 pieces of the type unknown instead of one/);
  refused(Buffer.concat([unknown, piece('a', 5)]), /has the unused piece "a"/);
  refused(Buffer.concat([unknown, piece('<0x41>', 6)]), /must have all 256 pieces of bytes/);
  refused(Buffer.concat([unknown, piece('ab'), bpe]), /has the piece "ab", which no two other pieces make/);
  const letters = ['a', 'b', 'c'].map((text, index) => piece(text, 1, -9 - index));
  refused(
    Buffer.concat([unknown, ...letters, piece('ab'), piece('bc'), bpe]),
    /has the same score for "ab" and "bc"/,
  );
  const runs = (...lengths: number[]) =>
    Buffer.concat([
      unknown,
      ...lengths.map((length) => piece('-'.repeat(length), 1, length === 1 ? -1 : -2)),
      bpe,
    ]);
  t.doesNotThrow(() => convert(runs(1, 2, 4, 3, 8)));
  refused(runs(1, 2, 4, 8, 16, 32, 64, 128), /has the same score for "--" and "----"/);

  const scored = (scores: Readonly<Record<number, number>>) =>
    Buffer.concat([
      unknown,
      ...Object.entries(scores).map(([length, score]) => piece('-'.repeat(Number(length)), 1, score)),
      bpe,
    ]);
  // As those of Llama.
  t.doesNotThrow(() => convert(scored({ 1: -9, 2: -1, 4: -2, 8: -3, 3: -5, 5: -5, 6: -5, 7: -5 })));
  // A run of five is -- -- - first; then SentencePiece makes ----, and merges would make ---.
  refused(scored({ 1: -9, 2: -1, 3: -5, 4: -5 }), /has runs of "-" with one score that no merges make/);
});
