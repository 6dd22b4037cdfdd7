// Compares components of a tokenizer.json with the results of the Hugging Face library in Rust
// (golden/make_golden_tokenizers.py).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ZerofleetError } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { decoderOf } from './decoders.js';
import { Component } from './fields.js';
import { modelOf } from './models.js';
import { normalizerOf } from './normalizers.js';
import { preTokenizerOf } from './pre-tokenizers.js';
import { Tokenizer } from './tokenizer.js';

type Json = Record<string, unknown>;
type Attempt<T> = { result: T } | { error: string };
type Case<T> = { component: Json } & ({ results: Attempt<T>[] } | { error: string });

interface Golden {
  texts: string[];
  normalizer: Case<string>[];
  pre_tokenizer: Case<string[]>[];
  pieces: string[];
  model: Case<number[]>[];
  token_lists: string[][];
  decoder: Case<string>[];
  tokenizers: ({ file: Json } & (
    | { error: string }
    | { texts: { text: string; ids: number[]; as_text: number[]; whole: number[]; decoded: string }[] }
  ))[];
}

const golden: Golden = JSON.parse(
  readFileSync(join(projectRoot(), 'formats', 'tokenizer', 'golden', 'tokenizers.json'), 'utf8'),
);

/** Components that the library reads and this reader refuses by name. */
const REFUSED: readonly RegExp[] = [
  /pre-tokenizer UnicodeScripts is not supported/,
  /model WordLevel is not supported/,
  /decoder CTC is not supported/,
  /decoder: a decoder with a regular expression is not supported/,
  /dropout, which merges at random, is not supported/,
  /prepend_scheme "first" behind Metaspace or ByteLevel is not supported/,
  /prepend_scheme "first" with a normalizer that may drop the beginning/,
  /a second processor that adds tokens is not supported/,
  /added token "<T>" is "<t>" when normalized, as is no or another token/,
  /\\X/,
  /the id 99 for "<t>", which follows as 20, is not supported/,
  /the id 22 for "<u>", which follows as 21, is not supported/,
];

function attempt<T>(run: () => T): Attempt<T> {
  try {
    return { result: run() };
  } catch (error) {
    if (!(error instanceof ZerofleetError) || error.code !== 'tokenizer_invalid') throw error;
    return { error: error.message };
  }
}

function table<I, O>(
  name: string,
  { cases, inputs }: { cases: readonly Case<O>[]; inputs: readonly I[] },
  make: (component: Component) => (input: I) => O,
): void {
  t.test(name, async (t) => {
    for (const { component, ...expected } of cases) {
      const label = JSON.stringify(component).slice(0, 200);
      const made = attempt(() => make(new Component(component, name)));
      if ('error' in made) {
        const refused = REFUSED.some((pattern) => pattern.test(made.error));
        t.ok('error' in expected || refused, `${label}: ${made.error}`);
      } else if ('error' in expected) t.fail(`${label}: read, but Rust says ${expected.error}`);
      else
        for (const [index, result] of expected.results.entries()) {
          const input = inputs[index] as I;
          const got = attempt(() => made.result(input));
          const title = `${label} of ${JSON.stringify(input)}`;
          if ('error' in result) t.ok('error' in got, title);
          else t.strictSame(got, result, title);
        }
    }
  });
}

table('normalizer', { cases: golden.normalizer, inputs: golden.texts }, normalizerOf);
table('pre_tokenizer', { cases: golden.pre_tokenizer, inputs: golden.texts.slice(1) }, (component) => {
  const { divide, spell } = preTokenizerOf(component);
  return (text) => divide([{ text, first: true }]).map((piece) => spell(piece.text));
});
table('model', { cases: golden.model, inputs: golden.pieces }, (component) => {
  const model = modelOf(component, new Set());
  return (piece) => [...model.encode(piece)];
});
table('decoder', { cases: golden.decoder, inputs: golden.token_lists }, (component) => {
  const decode = decoderOf(component);
  return (tokens) => decode(tokens).join('');
});

t.test('added tokens and post-processors', async (t) => {
  for (const { file, ...expected } of golden.tokenizers) {
    const { model: _, ...parts } = file;
    const label = JSON.stringify(parts);
    const made = attempt(() => new Tokenizer(file));
    if ('error' in made) {
      const refused = REFUSED.some((pattern) => pattern.test(made.error));
      t.ok('error' in expected || refused, `${label}: ${made.error}`);
    } else if ('error' in expected) t.fail(`${label}: read, but Rust says ${expected.error}`);
    else
      for (const { text, ids, as_text, whole, decoded } of expected.texts) {
        const tokenizer = made.result;
        const { before, after } = tokenizer.around;
        const title = `${label} of ${JSON.stringify(text)}`;
        t.strictSame(tokenizer.encode(text, 'parsed'), ids, title);
        t.strictSame(tokenizer.encode(text, 'text'), as_text, `${title}, special tokens as text`);
        t.strictSame([...before, ...tokenizer.encode(text, 'parsed'), ...after], whole, `${title}, whole`);
        // The library shows special tokens changed by a normalizer; here no special token is part of a text.
        if (!changesSpecial(tokenizer)) t.equal(tokenizer.decoder.decode(ids), decoded, `${title}, decoded`);
      }
  }
});

t.test('what would decode for a long time is refused', async (t) => {
  const file = golden.tokenizers.find((each) => !('error' in each))?.file;
  const replaceBy = (content: string) => ({ type: 'Replace', pattern: { String: 'a' }, content });
  const sequence = (count: number, content: string) => ({
    type: 'Sequence',
    decoders: Array<object>(count).fill(replaceBy(content)),
  });
  const make = (parts: object) => () => new Tokenizer({ ...file, ...parts });
  t.doesNotThrow(make({ decoder: sequence(4, 'aa') }));
  t.doesNotThrow(make({ decoder: sequence(15, 'b') }));
  t.throws(make({ decoder: sequence(5, 'aa') }), /over 16 times as long/);
  t.throws(make({ decoder: replaceBy('a'.repeat(17)) }), /over 16 times as long/);
  t.throws(make({ decoder: sequence(16, 'b') }), /a sequence of more than 16 decoders/);
  const nested = (depth: number): object =>
    depth === 0 ? { type: 'Fuse' } : { type: 'Sequence', decoders: [nested(depth - 1)] };
  t.throws(make({ decoder: nested(2000) }), /a sequence of more than 16 decoders/);
  const vocab = (length: number) => ({
    added_tokens: [],
    post_processor: null,
    model: { type: 'BPE', vocab: { a: 0, ['b'.repeat(length)]: 1 }, merges: [] },
  });
  t.doesNotThrow(make(vocab(1024)));
  t.throws(make(vocab(1025)), /the token 1 has 1025 characters; at most 1024 are supported/);
});

function changesSpecial({ added }: Tokenizer): boolean {
  return added.some(
    ({ special, normalized, content }) => special && normalized !== null && normalized !== content,
  );
}

t.test('no text of users becomes a special token, whatever the model is', async (t) => {
  const content = '<s>';
  const letters = ['<', 's', '>', 's>', 'a'];
  const vocab = { [content]: 0, ...Object.fromEntries(letters.map((text, index) => [text, index + 1])) };
  const merges = [
    ['s', '>'],
    ['<', 's>'],
  ];
  const scored = [content, ...letters].map((text) => [text, -text.length]);
  const models: Record<string, [model: Json, tokens: number[]]> = {
    'a merge makes it': [{ type: 'BPE', vocab, merges }, [1, 4]],
    'a whole piece is it': [{ type: 'BPE', vocab, merges: [], ignore_merges: true }, [1, 2, 3]],
    'it has the best score': [{ type: 'Unigram', vocab: scored, unk_id: 5 }, [1, 4]],
    'its characters are unknown': [
      { type: 'Unigram', vocab: [[content, 0], ...letters.map((text) => [`${text}!`, -1])], unk_id: 5 },
      [5],
    ],
  };
  for (const [name, [model, tokens]] of Object.entries(models)) {
    const special = { id: 0, content, special: true };
    const tokenizer = new Tokenizer({ model, added_tokens: [special] });
    t.strictSame(tokenizer.encode(content, 'text'), tokens, name);
    t.strictSame(tokenizer.encode(content, 'parsed'), [0], `${name}, parsed`);
    // Any other token of the same text is spelled.
    const plain = new Tokenizer({ model, added_tokens: [] });
    t.strictSame(plain.encode(content, 'text'), [0], `${name}, not special`);
  }
  const bytes = Array.from({ length: 256 }, (_, byte) => [
    `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
    0,
  ]);
  const model = {
    type: 'Unigram',
    vocab: [['<unk>', 0], ['a', -1], ...bytes],
    unk_id: 0,
    byte_fallback: true,
  };
  const tokenizer = new Tokenizer({ model });
  t.strictSame(tokenizer.encode('a<0x41>', 'text'), [
    1,
    ...Array.from(Buffer.from('<0x41>'), (byte) => byte + 2),
  ]);
});
