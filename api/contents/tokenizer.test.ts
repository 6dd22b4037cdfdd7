import t from 'tap';
import { TINY_TOKENIZER } from '../../formats/testing/models.js';
import { describeTokenizer } from './tokenizer.js';

t.test('tokenizer properties that jobs use', async (t) => {
  t.strictSame(describeTokenizer({ tokenizer: TINY_TOKENIZER }), { vocab_size: 27, chat_template: null });
  const described = describeTokenizer({
    tokenizer: TINY_TOKENIZER,
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
    t.throws(() => describeTokenizer({ tokenizer }), {
      code: 'tokenizer_invalid',
      message: /can't be used: ./,
    });
});

t.test('a chat template that is too long for a record is refused', async (t) => {
  const describe = (length: number) => () =>
    describeTokenizer({ tokenizer: TINY_TOKENIZER, template: 'x'.repeat(length) });
  t.doesNotThrow(describe(100_000));
  t.throws(describe(100_001), {
    code: 'tokenizer_invalid',
    message: /has 100001 characters, at most 100000/,
  });
});
