import t from 'tap';
import { TINY_TOKENIZER } from '../../formats/testing/models.js';
import { describeTokenizer } from './tokenizer.js';

t.test('tokenizer properties that jobs use', async (t) => {
  t.strictSame(describeTokenizer(TINY_TOKENIZER), { vocab_size: 27, chat_template: null });
  const described = describeTokenizer(TINY_TOKENIZER, {
    config: { chat_template: 'of the configuration' },
    template: 'of the file',
  });
  t.strictSame(described, { vocab_size: 27, chat_template: 'of the file' });
});

t.test('a tokenizer that cannot be reproduced exactly is refused with the reason', async (t) => {
  const bad = [
    { ...TINY_TOKENIZER, model: { ...TINY_TOKENIZER.model, dropout: 0.1 } },
    { ...TINY_TOKENIZER, decoder: { type: 'CTC' } },
    { ...TINY_TOKENIZER, added_tokens: [{ id: 30, content: '</s>', special: true }] },
    { ...TINY_TOKENIZER, pre_tokenizer: { type: 'Nope' } },
    { ...TINY_TOKENIZER, model: { ...TINY_TOKENIZER.model, merges: 3 } },
  ];
  for (const tokenizer of bad)
    t.throws(() => describeTokenizer(tokenizer), {
      code: 'tokenizer_invalid',
      message: /can't be used: ./,
    });
});

t.test('a chat template that is too long for a record is refused', async (t) => {
  const describe = (length: number) => () =>
    describeTokenizer(TINY_TOKENIZER, { template: 'x'.repeat(length) });
  t.doesNotThrow(describe(100_000));
  t.throws(describe(100_001), {
    code: 'tokenizer_invalid',
    message: /has 100001 characters, at most 100000/,
  });
});

t.test("a file of Mistral with Llama 3's split pattern is read as it is, and named", async (t) => {
  const split = (regex: string) => ({
    ...TINY_TOKENIZER,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: regex }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, use_regex: false },
      ],
    },
  });
  const llama3 = split(
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  );
  t.equal(describeTokenizer(llama3, {}, 'mistral').flaw, 'split_pattern');
  t.equal(describeTokenizer(llama3, {}, 'llama').flaw, undefined);
  t.equal(describeTokenizer(split('\\p{N}|\\s+'), {}, 'mistral').flaw, undefined);
  t.equal(describeTokenizer(TINY_TOKENIZER, {}, 'mistral').flaw, undefined);
});
