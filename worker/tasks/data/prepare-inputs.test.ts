import { readdir } from 'node:fs/promises';
import t from 'tap';
import { modelKey } from '../../../contracts/index.js';
import { prepareTokens } from './prepare-tokens.js';
import { documentsOf, JSONL, LINES, MODEL, setup, templates } from './testing/prepared-documents.js';

t.test('the date of a template is that of the spec', async (t) => {
  const { objects, request } = await setup(t, LINES, JSONL);
  const chatTemplate =
    "{{ strftime_now('%F') }}{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}";
  const data = {
    ...request.data,
    tokenizer: 'bytes',
    chat_template: chatTemplate,
    template_date: '2020-02-29',
  };
  const { token_file } = await prepareTokens(objects, { ...request, data });
  const { tokens } = (await documentsOf(token_file))[1]!;
  t.match(Buffer.from(tokens).toString(), /^2020-02-29What is 1\?/);
});

t.test('violations of the model, the dataset or the tokenizer are reported', async (t) => {
  const { objects, request } = await setup(t, LINES, JSONL);
  const chats = { ...request.data, chat_template: templates.chatml as string };
  const refused = async (changes: Partial<typeof request>, error: { code: string; message: RegExp }) => {
    await t.rejects(prepareTokens(objects, { ...request, data: chats, ...changes }), error);
  };
  const vocabulary = { code: 'token_out_of_vocab', message: /vocabulary of 50; train a model/ };
  await refused({ vocab_size: 50 }, vocabulary);
  t.strictSame(await readdir(request.cache_dir), [], 'no file is left');
  await prepareTokens(objects, { ...request, data: chats });
  await refused({ vocab_size: 50 }, vocabulary);
  const fewer = { ...request.dataset, num_documents: 599 };
  await refused(
    { dataset: fewer, cache_dir: `${request.cache_dir}-2` },
    { code: 'dataset_corrupt', message: /600 documents, but the upload has 599/ },
  );
  const missing = { ...chats, tokenizer: 'mdl_01J00000000000000000000001' };
  await refused({ data: missing }, { code: 'model_not_found', message: /mdl_01J0.*tokenizer/ });
  const raising = { ...chats, chat_template: "{{ raise_exception('no') }}" };
  await refused({ data: raising }, { code: 'chat_template_invalid', message: /^line 2: / });
});

t.test('the cache key covers all inputs of the files', async (t) => {
  const { objects, request } = await setup(t, LINES, JSONL);
  const data = { ...request.data, chat_template: templates.chatml as string };
  const names = new Set<string>();
  for (const changes of [
    {},
    { data: { ...data, tokenizer: 'bytes' } },
    { data: { ...data, packing: 'whole' as const } },
    { data: { ...data, template_date: '2026-11-25' } },
    { data: { ...data, chat_template: templates.plain as string } },
    { data: { ...data, chat: { turns: 'each' as const, reasoning: 'learn' as const } } },
    { sequence_length: 25 },
  ])
    names.add((await prepareTokens(objects, { ...request, data, ...changes })).token_file);
  t.equal(names.size, 7);
  const again = await prepareTokens(objects, { ...request, data, num_threads: 2, vocab_size: 2000 });
  t.ok(names.has(again.token_file));
  await objects.put(`${modelKey(MODEL)}/tokenizer_config.json`, Buffer.from('{}'));
  names.add((await prepareTokens(objects, { ...request, data })).token_file);
  t.equal(names.size, 8, 'the tokenizer is identified by the content of its files');
});

t.test('progress is reported in bytes, up to the last', async (t) => {
  const { objects, request } = await setup(t, LINES, JSONL);
  const reported: number[] = [];
  const data = { ...request.data, chat_template: templates.chatml as string };
  await prepareTokens(objects, { ...request, data }, (bytes) => reported.push(bytes));
  t.equal(reported.at(-1), LINES.length);
  t.same(
    reported,
    [...reported].sort((a, b) => a - b),
  );
});
