import t from 'tap';
import type { Checkpoint, Dataset, JobSpec, Model, ResolvedJobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';
import { DATASET, LLAMA, SMALLEST } from '../testing/documents.js';
import type { InitSource } from './init/source.js';
import { modelsOf } from './models-of.js';

const ID = 'mdl_01J00000000000000000000000';
const model = (changes: Partial<Model> = {}) =>
  ({
    id: ID,
    has_tokenizer: true,
    tokenizer: { vocab_size: 200, chat_template: 'its own' },
    config: LLAMA,
    ...changes,
  }) as unknown as Model;
const TEXTS: Dataset = { ...DATASET, format: 'jsonl', num_documents: 9, num_chats: 0, num_tokens: null };
const CHATS: Dataset = { ...TEXTS, num_chats: 5 };
const TOKENS: Dataset = { ...DATASET, format: 'tokens', num_documents: 3, max_token: 255 };

function resolve(
  data: Partial<JobSpec['data']>,
  dataset: Dataset | null,
  {
    source = null,
    tokenizer = null,
    today = null,
  }: { source?: InitSource | null; tokenizer?: Model | null; today?: string | null } = {},
) {
  const initFrom = source && ('model' in source ? { model: ID } : { checkpoint: source.checkpoint.id });
  const document: JobSpec = {
    ...SMALLEST,
    ...(initFrom && { model: { ...('model' in initFrom ? {} : { config: LLAMA }), init_from: initFrom } }),
    data: { ...SMALLEST.data, ...data },
  };
  const { spec, errors } = resolveSpec(document, dataset, { source, tokenizer, today });
  return { spec, data: spec.data, errors, codes: errors.map(({ pointer, code }) => `${pointer} ${code}`) };
}

const begun = resolveSpec({ ...SMALLEST, model: { config: LLAMA } }, null).spec;
const checkpoint = (tokenizer: string | null, initFrom: { model: string } | null = null): InitSource => ({
  checkpoint: { id: 'ckpt_01J00000000000000000000000' } as Checkpoint,
  spec: {
    ...begun,
    model: { ...begun.model, init_from: initFrom },
    data: { tokenizer } as ResolvedJobSpec['data'],
  },
});

t.test('a model with an unreadable tokenizer does not fall back to bytes silently', async (t) => {
  const given = model({ has_tokenizer: false, tokenizer: null, unread_tokenizer: ['vocab.json'] });
  const { data, errors } = resolve({}, DATASET, { source: { model: given }, tokenizer: given });
  t.equal(data.tokenizer, ID);
  t.match(errors, [
    {
      pointer: '/data/tokenizer',
      code: 'tokenizer_missing',
      message: /has only vocab.json as tokenizer, which is not supported; .* or use "bytes"/,
    },
  ]);
  t.strictSame(resolve({ tokenizer: 'bytes' }, DATASET, { source: { model: given } }).errors, []);
  t.strictSame(resolve({}, TOKENS, { source: { model: given } }).errors, [], 'tokens need no tokenizer');
});

t.test('the tokenizer is that of the initial weights', async (t) => {
  const cases: [string, InitSource | null, Dataset | null, string | null][] = [
    ['fresh weights', null, DATASET, 'bytes'],
    ['a model with a tokenizer', { model: model() }, DATASET, ID],
    [
      'a model without a tokenizer',
      { model: model({ has_tokenizer: false, tokenizer: null }) },
      DATASET,
      'bytes',
    ],
    ['a checkpoint', checkpoint(ID), DATASET, ID],
    ['a checkpoint of bytes', checkpoint('bytes'), DATASET, 'bytes'],
    ['a checkpoint of tokens', checkpoint(null), DATASET, 'bytes'],
    [
      'a checkpoint of tokens from a job initialized with a model',
      checkpoint(null, { model: ID }),
      DATASET,
      ID,
    ],
    ['tokens need no tokenizer', { model: model() }, TOKENS, null],
  ];
  for (const [name, source, dataset, expected] of cases) {
    t.equal(resolve({}, dataset, { source }).data.tokenizer, expected, name);
    t.equal(resolve({ tokenizer: null }, dataset, { source }).data.tokenizer, expected, `null, ${name}`);
  }
  t.equal(resolve({ tokenizer: 'bytes' }, DATASET, { source: { model: model() } }).data.tokenizer, 'bytes');
});

t.test('the chat template is part of the resolved document if there are chats', async (t) => {
  const given = { tokenizer: ID };
  t.equal(resolve(given, CHATS, { tokenizer: model() }).data.chat_template, 'its own');
  t.equal(
    resolve({ ...given, chat_template: 'mine' }, CHATS, { tokenizer: model() }).data.chat_template,
    'mine',
  );
  t.equal(resolve({ chat_template: 'mine' }, CHATS).data.chat_template, 'mine');
  t.equal(resolve(given, TEXTS, { tokenizer: model() }).data.chat_template, null);
});

t.test('lines stay whole unless the document says otherwise', async (t) => {
  t.equal(resolve({}, DATASET).data.packing, 'split');
  t.equal(resolve({}, TOKENS).data.packing, 'split');
  t.equal(resolve({}, TEXTS).data.packing, 'whole');
  t.equal(resolve({ packing: 'split' }, TEXTS).data.packing, 'split');
});

t.test('a resolved document resolves to itself', async (t) => {
  for (const [data, dataset, tokenizer] of [
    [{}, TOKENS, null],
    [{ chat_template: 'mine' }, CHATS, null],
    [{ tokenizer: ID }, CHATS, model()],
  ] as const) {
    const resolved = resolve(data, dataset, { tokenizer });
    t.same(resolved.codes, []);
    t.same(resolve(resolved.data, dataset, { tokenizer }).data, resolved.data);
    t.same(resolve(resolved.data, dataset, { tokenizer }).codes, []);
  }
});

t.test('a mismatch is refused by name', async (t) => {
  const small = { ...model(), tokenizer: { vocab_size: 257, chat_template: null } };
  const cases: [string, ReturnType<typeof resolve>, string, RegExp][] = [
    [
      'a larger vocabulary than the model has',
      resolve({ tokenizer: ID }, DATASET, { tokenizer: small }),
      '/data/tokenizer vocab_too_small',
      /has 257 tokens, and the model's vocab_size is 256; use .* at least 257$/,
    ],
    [
      'a token that the model does not have',
      resolve({}, { ...TOKENS, max_token: 256 }),
      '/data/dataset vocab_too_small',
      /has the token 256, and the model's vocab_size is 256; .* at least 257$/,
    ],
    [
      'a model without a tokenizer',
      resolve({ tokenizer: ID }, DATASET, { tokenizer: model({ has_tokenizer: false, tokenizer: null }) }),
      '/data/tokenizer tokenizer_missing',
      /has no tokenizer.json and no tokenizer.model; use a model that has one, or bytes/,
    ],
    [
      'chats for bytes, without a template',
      resolve({}, CHATS),
      '/data/chat_template chat_template_missing',
      /5 of the 9 documents .* are chats, and the bytes tokenizer has no chat template; set one here/,
    ],
    [
      'chats for a tokenizer without a template',
      resolve({ tokenizer: ID }, CHATS, {
        tokenizer: { ...model(), tokenizer: { vocab_size: 9, chat_template: null } },
      }),
      '/data/chat_template chat_template_missing',
      /the tokenizer of model mdl_\w+ has no chat template/,
    ],
    [
      'a template without chats',
      resolve({ chat_template: 'mine' }, TEXTS),
      '/data/chat_template field_without_effect',
      /has no chats; omit it/,
    ],
    [
      'a tokenizer for tokens',
      resolve({ tokenizer: 'bytes' }, TOKENS),
      '/data/tokenizer field_without_effect',
      /already contains tokens; omit it/,
    ],
  ];
  for (const [name, { codes, errors }, expected, message] of cases) {
    t.same(codes, [expected], name);
    t.match(errors[0]?.message, message, name);
  }
});

t.test('the length of the data depends on a text alone', async (t) => {
  const short = { ...DATASET, num_tokens: 100, bytes: 100 };
  t.same(resolve({}, short).codes, ['/train/sequence_length sequence_longer_than_data']);
  t.same(resolve({ packing: 'whole' }, short).codes, []);
  t.same(resolve({ packing: 'whole', validation_fraction: 0.1 }, short).codes, [
    '/data/validation_fraction dataset_too_small',
  ]);
  t.same(resolve({ tokenizer: ID }, short, { tokenizer: model() }).codes, []);
  t.same(resolve({}, { ...short, format: 'tokens', max_token: 3 }).codes, []);
});

t.test('rules about missing sources are skipped', async (t) => {
  t.same(resolve({ tokenizer: ID, chat_template: 'mine' }, null).codes, []);
  t.same(resolve({ tokenizer: ID }, CHATS).codes, []);
});

t.test('a job needs the model of its tokenizer', async (t) => {
  const other = 'mdl_01J00000000000000000000001';
  t.same(modelsOf(resolve({}, DATASET).spec), []);
  t.same(modelsOf(resolve({ tokenizer: ID }, DATASET, { tokenizer: model() }).spec), [ID]);
  const source = { model: model() };
  t.same(modelsOf(resolve({}, DATASET, { source, tokenizer: source.model }).spec), [ID]);
  t.same(modelsOf(resolve({ tokenizer: other }, DATASET, { source }).spec), [ID, other]);
  t.same(modelsOf(resolve({}, TOKENS).spec), []);
});

t.test('the date of a template is fixed once', async (t) => {
  const today = '2026-11-25';
  const chatTemplate = "{{ strftime_now('%d %b %Y') }}{{ messages[0].content }}";
  const dated = resolve({ chat_template: chatTemplate }, CHATS, { today });
  t.strictSame(dated.errors, []);
  t.equal(dated.data.template_date, today);
  const chosen = resolve({ chat_template: chatTemplate, template_date: '2020-02-29' }, CHATS, { today });
  t.strictSame(chosen.errors, []);
  t.equal(chosen.data.template_date, '2020-02-29');

  const begun = checkpoint('bytes');
  if (!('spec' in begun)) throw new Error('no checkpoint');
  Object.assign(begun.spec.data, { chat_template: chatTemplate, template_date: '2021-01-31' });
  t.equal(
    resolve({ chat_template: chatTemplate }, CHATS, { today, source: begun }).data.template_date,
    '2021-01-31',
  );
  const other = `${chatTemplate}!`;
  t.equal(resolve({ chat_template: other }, CHATS, { today, source: begun }).data.template_date, today);
});

t.test('a template without a date has none', async (t) => {
  const today = '2026-11-25';
  t.equal(resolve({ chat_template: 'x' }, CHATS, { today }).data.template_date, null);
  for (const [data, dataset] of [
    [{ chat_template: 'x', template_date: today }, CHATS],
    [{ template_date: today }, DATASET],
  ] as const)
    t.strictSame(resolve(data, dataset, { today }).codes, ['/data/template_date field_without_effect']);
});

t.test('what is learned of chats is filled in for chats with a template only', async (t) => {
  const chatTemplate = '{{ messages[0].content }}';
  t.same(resolve({ chat_template: chatTemplate }, CHATS).data.chat, {
    turns: 'together',
    reasoning: 'learn',
  });
  const each = resolve({ chat_template: chatTemplate, chat: { turns: 'each' } }, CHATS);
  t.same([each.codes, each.data.chat], [[], { turns: 'each', reasoning: 'learn' }]);
  t.equal(resolve({}, DATASET).data.chat, undefined);
  t.strictSame(resolve({ chat: {} }, DATASET).codes, ['/data/chat field_without_effect']);
});
