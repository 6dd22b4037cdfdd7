import t from 'tap';
import { TINY_TOKENIZER } from '../testing/models.js';
import { chatTemplateOf, vocabSizeOf } from './tokenizer.js';

t.test('the vocabulary size is the largest id plus one', async (t) => {
  t.equal(vocabSizeOf(TINY_TOKENIZER), 27);
  t.equal(vocabSizeOf({ model: { vocab: { a: 0, b: 9 } } }), 10);
  const unigram = [
    ['<unk>', 0],
    ['a', -1.5],
  ];
  t.equal(vocabSizeOf({ model: { vocab: unigram } }), 2);
  t.equal(vocabSizeOf({ model: { vocab: unigram }, added_tokens: [{ id: 1, content: 'a' }] }), 2);
});

const BAD: [string, Record<string, unknown>, RegExp][] = [
  ['no model', {}, /it has no model/],
  ['a model that is null', { model: null }, /it has no model/],
  ['another kind of model', { model: { type: 'WordLevel', vocab: { a: 0 } } }, /BPE, WordPiece and Unigram/],
  ['no vocabulary', { model: { type: 'BPE' } }, /its model has no vocab/],
  ['an empty vocabulary', { model: { vocab: {} } }, /it has no tokens/],
  ['a text as id', { model: { vocab: { a: '0' } } }, /token "a" has the id "0"/],
  ['a negative id', { model: { vocab: { a: -1 } } }, /has the id -1/],
  ['a fractional id', { model: { vocab: { a: 1.5 } } }, /has the id 1.5/],
  ['an id too large for a table', { model: { vocab: { a: 4e9 } } }, /from 0 to 16777215/],
  ['added tokens that are not a list', { model: { vocab: { a: 0 } }, added_tokens: {} }, /are not a list/],
  [
    'an added token without an id',
    { model: { vocab: { a: 0 } }, added_tokens: [null] },
    /has the id undefined/,
  ],
];
for (const [name, tokenizer, message] of BAD)
  t.test(`refused: ${name}`, async (t) => {
    t.throws(() => vocabSizeOf(tokenizer), { code: 'tokenizer_invalid', message });
  });

t.test('the chat template of a model', async (t) => {
  const named = [
    { name: 'tool_use', template: 'tools' },
    { name: 'default', template: 'plain' },
  ];
  t.equal(chatTemplateOf({}), null);
  t.equal(chatTemplateOf({ chat_template: 'one' }), 'one');
  t.equal(chatTemplateOf({ chat_template: '' }), null);
  t.equal(chatTemplateOf({ chat_template: named }), 'plain');
  t.equal(chatTemplateOf({ chat_template: [null] }), null);
  t.equal(chatTemplateOf({ chat_template: 'one' }, 'of the file'), 'of the file');
});
