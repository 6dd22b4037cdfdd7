import t from 'tap';
import { convertSentencepiece } from '../sentencepiece/tokenizer-file.js';
import { sentencepieceModel } from '../testing/sentencepiece.js';
import { byteToken } from '../tokenizer/characters.js';
import { ggufBytes, ggufTokenizer } from './tokenizer.js';

type Fields = Record<string, unknown>;

const BYTE_LEVEL = { type: 'ByteLevel', add_prefix_space: false, use_regex: true };
const added = (id: number, content: string, more: Fields = {}) => ({
  id,
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: true,
  ...more,
});
const beginning = (content: string, id: number) => ({
  type: 'TemplateProcessing',
  single: [{ SpecialToken: { id: content, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
  special_tokens: { [content]: { id: content, ids: [id], tokens: [content] } },
});
/** Byte-level tokens a, b, ab with two special tokens and one of another kind. */
const byteLevel = (changes: Fields = {}, model: Fields = {}): Fields => ({
  added_tokens: [added(3, '<s>'), added(4, '</s>'), added(5, '<tool>', { special: false })],
  normalizer: null,
  pre_tokenizer: BYTE_LEVEL,
  post_processor: null,
  decoder: { type: 'ByteLevel' },
  model: { type: 'BPE', vocab: { a: 0, b: 1, ab: 2 }, merges: [['a', 'b']], ...model },
  ...changes,
});
const split = (digits: string, more: Fields = {}) => ({
  type: 'Sequence',
  pretokenizers: [
    {
      type: 'Split',
      pattern: {
        Regex: `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`,
      },
      behavior: 'Isolated',
      invert: false,
      ...more,
    },
    { ...BYTE_LEVEL, use_regex: false },
  ],
});

function made(file: Fields, template: string | null = null, isTrained = true) {
  const config = JSON.stringify({ bos_token: '<s>', eos_token: '</s>' });
  const files = { tokenizer: JSON.stringify(file), config, special_tokens_map: null };
  const { metadata, ...rest } = ggufTokenizer(files, 8, { template, isTrained, date: null });
  const fields = metadata.map(([key, { value }]) => [
    key.replace('tokenizer.', '').replace('ggml.', ''),
    value,
  ]);
  return { ...rest, fields: Object.fromEntries(fields) as Fields };
}

t.test('tokens, their types and ids without a token', async (t) => {
  const { fields, stops, beginText } = made(byteLevel());
  t.same(fields, {
    model: 'gpt2',
    pre: 'gpt-2',
    merges: ['a b'],
    tokens: ['a', 'b', 'ab', '<s>', '</s>', '<tool>', '[PAD6]', '[PAD7]'],
    token_type: [1, 1, 1, 3, 3, 4, 5, 5],
    bos_token_id: 3,
    eos_token_id: 4,
    add_bos_token: false,
    add_eos_token: false,
  });
  t.same(stops, ['</s>']);
  t.equal(beginText, null);
});

t.test('pre-tokenizers have the names of llama.cpp', async (t) => {
  const digits = { type: 'Digits', individual_digits: true };
  for (const [preTokenizer, ignored, name] of [
    [split('\\p{N}{1,3}'), true, 'llama-bpe'],
    [split('\\p{N}{1,3}'), false, 'dbrx'],
    [split('\\p{N}'), false, 'qwen2'],
    [{ type: 'Sequence', pretokenizers: [digits, BYTE_LEVEL] }, false, 'smollm'],
  ] as const)
    t.equal(made(byteLevel({ pre_tokenizer: preTokenizer }, { ignore_merges: ignored })).fields.pre, name);
  t.equal(
    made(byteLevel({ normalizer: { type: 'NFC' }, pre_tokenizer: split('\\p{N}') })).fields.pre,
    'qwen2',
  );
});

t.test('what llama.cpp would read otherwise is refused by name', async (t) => {
  for (const [file, message] of [
    [
      byteLevel({ pre_tokenizer: split('\\p{N}{1,2}') }),
      /pre-tokenizer Split.*1,2.* is none of those .*qwen2\)/,
    ],
    [byteLevel({ pre_tokenizer: split('\\p{N}', { invert: true }) }), /inverted/],
    [byteLevel({ pre_tokenizer: { ...BYTE_LEVEL, add_prefix_space: true } }), /add_prefix_space/],
    [byteLevel({ pre_tokenizer: split('\\p{N}') }, { ignore_merges: true }), /with ignore_merges/],
    [byteLevel({ normalizer: { type: 'Lowercase' } }), /normalizer Lowercase/],
    [byteLevel({}, { continuing_subword_prefix: '##' }), /continuing_subword_prefix/],
    [byteLevel({ added_tokens: [added(3, '<s>', { rstrip: true })] }), /"<s>" has rstrip/],
    [
      {
        ...byteLevel(),
        added_tokens: [],
        model: { type: 'Unigram', unk_id: 0, vocab: [['a', -1]] },
      },
      /its model is Unigram/,
    ],
  ] as const)
    t.throws(() => made(file), { code: 'export_unsupported', message });
});

t.test('a prompt begins as in the training', async (t) => {
  const postProcessor = beginning('<s>', 3);
  const writes = '{{ bos_token }}{{ messages[0].content }}';
  const chats = '{{ messages[0].content }}';
  const begun = (
    template: string | null,
    isTrained: boolean,
    changes: Fields = { post_processor: postProcessor },
  ) => {
    const { fields, beginText } = made(byteLevel(changes), template, isTrained);
    t.equal(beginText, fields.add_bos_token ? '<s>' : null);
    return fields.add_bos_token;
  };
  t.equal(begun(null, false), true, 'as the tokenizer adds it');
  t.equal(begun(writes, true), true, 'as the template writes it');
  t.equal(begun(chats, true), false, 'chats were trained without it');
  t.equal(begun(chats, false), true, 'other texts were trained with it');
  t.equal(begun(writes, true, {}), true);
  t.equal(begun(writes, false, {}), false);
  t.equal(made(byteLevel(), chats).fields.chat_template, chats);
});

t.test('the token behind a turn ends answers as well', async (t) => {
  const turns = '{% for m in messages %}{{ m.content }}<s>{% endfor %}';
  const { fields, stops } = made(byteLevel(), turns);
  t.match(fields, { eos_token_id: 4, eot_token_id: 3 });
  t.same(stops, ['</s>', '<s>']);
});

const SPACES = [
  { type: 'Prepend', prepend: '\u2581' },
  { type: 'Replace', pattern: { String: ' ' }, content: '\u2581' },
];
const BYTES = Array.from({ length: 256 }, (_, byte) => byteToken(byte));
const WORDS = ['\u2581', 'a', 'b', '\u2581a', 'ab', '\u2581ab'];
const MERGES = ['\u2581 a', 'a b', '\u2581a b', '\u2581 ab'];
/** As that of Llama 2. */
const sentencepiece = (changes: Fields = {}, model: Fields = {}): Fields => ({
  added_tokens: [added(0, '<unk>'), added(1, '<s>'), added(2, '</s>')],
  normalizer: { type: 'Sequence', normalizers: SPACES },
  pre_tokenizer: null,
  post_processor: beginning('<s>', 1),
  decoder: null,
  model: {
    type: 'BPE',
    unk_token: '<unk>',
    byte_fallback: true,
    vocab: Object.fromEntries(['<unk>', '<s>', '</s>', ...BYTES, ...WORDS].map((text, id) => [text, id])),
    merges: MERGES,
    ...model,
  },
  ...changes,
});

function spaced(file: Fields, template: string | null = null) {
  const config = JSON.stringify({ bos_token: '<s>', eos_token: '</s>' });
  const files = { tokenizer: JSON.stringify(file), config, special_tokens_map: null };
  const { metadata } = ggufTokenizer(files, 265, { template, isTrained: template !== null, date: null });
  const value = (key: string) => metadata.find(([name]) => name === `tokenizer.ggml.${key}`)?.[1].value;
  return { value, scores: (value('scores') as number[]).slice(-WORDS.length) };
}

t.test('merges of characters become scores', async (t) => {
  const { value, scores } = spaced(sentencepiece());
  t.equal(value('model'), 'llama');
  t.same(scores, [-1e9, -1e9, -1e9, -0, -1, -2]);
  t.same((value('token_type') as number[]).slice(0, 5), [3, 3, 3, 6, 6]);
  t.equal(value('add_space_prefix'), true);
  for (const [merges, message] of [
    [MERGES.slice(0, 3), /"\u2581" and "ab" are no merge.* token "\u2581ab"/],
    [['\u2581 a', '\u2581a b', 'a b', '\u2581 ab'], /merges to "\u2581ab" do not follow each other/],
  ] as const)
    t.throws(() => spaced(sentencepiece({}, { merges })), { code: 'export_unsupported', message });
  t.throws(() => spaced(sentencepiece({}, { byte_fallback: false })), /byte_fallback/);
  t.throws(() => spaced(sentencepiece({ normalizer: { type: 'NFKC' } })), /normalizer \[NFKC\]/);
});

t.test('a space is added where the training had one', async (t) => {
  const metaspace = (scheme: string) => ({
    normalizer: null,
    pre_tokenizer: { type: 'Metaspace', replacement: '\u2581', prepend_scheme: scheme, split: false },
  });
  const turns = '{{ bos_token }}{{ messages[0].content }}';
  const prefix = (scheme: string, template: string | null = null) =>
    spaced(sentencepiece(metaspace(scheme)), template).value('add_space_prefix');
  t.equal(prefix('always'), true);
  t.equal(prefix('never'), false);
  t.equal(prefix('first'), true);
  t.equal(prefix('first', turns), false, 'the text of a chat follows a special token');
});

t.test('bytes', async (t) => {
  const { metadata } = ggufBytes(258);
  const value = (key: string) => metadata.find(([name]) => name === `tokenizer.ggml.${key}`)?.[1].value;
  const tokens = value('tokens') as string[];
  t.equal(new Set(tokens).size, 258);
  t.same([tokens[65], tokens[10], tokens[257]], ['A', '\u010a', '[PAD257]']);
  t.match(value('merges'), []);
});

t.test('a tokenizer.model of SentencePiece', async (t) => {
  const convert = (name: string) =>
    convertSentencepiece('tokenizer.model', sentencepieceModel(name), {
      config: {},
      special_tokens_map: {},
      added_tokens: {},
    });
  const { tokenizer, special_tokens_map } = convert('bpe_llama');
  const gguf = (file: Fields) => {
    const files = {
      tokenizer: JSON.stringify(file),
      config: null,
      special_tokens_map: JSON.stringify(special_tokens_map),
    };
    const { metadata } = ggufTokenizer(files, 340, { template: null, isTrained: false, date: null });
    return (key: string) => metadata.find(([name]) => name === `tokenizer.ggml.${key}`)?.[1].value;
  };
  const value = gguf(tokenizer);
  t.equal(value('model'), 'llama');
  t.equal(value('add_space_prefix'), true);
  t.strictSame([value('bos_token_id'), value('eos_token_id'), value('add_bos_token')], [1, 2, true]);
  t.equal(gguf(convert('bpe_no_prefix').tokenizer)('add_space_prefix'), false);
  t.throws(() => gguf(convert('bpe_symbols').tokenizer), {
    code: 'export_unsupported',
    message: /its normalizer \[Replace/,
  });
  t.throws(() => gguf(convert('bpe_symbols_no_prefix').tokenizer), /"▁▁" stands for spaces/);
  t.throws(() => gguf(convert('unigram_llama').tokenizer), /its model is Unigram/);
});
