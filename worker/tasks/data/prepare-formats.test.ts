// Tests every format and tokenizer, from the stored dataset to the token files.
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import t from 'tap';
import type { Dataset } from '../../../contracts/index.js';
import { BatchEncoder } from '../../../formats/encoding/encode-batch.js';
import { readTokenFile } from '../../testing/prepared.js';
import { prepareTokens } from './prepare-tokens.js';
import {
  DOCUMENTS,
  documentsOf,
  FILES,
  JSONL,
  LINES,
  setup,
  templates,
} from './testing/prepared-documents.js';

/** Returns the expected tokens of each document. */
function expectedDocuments(chatTemplate: string | null) {
  const options = { tokenizer: FILES, parse_special_tokens: false, template_date: null, unit: null };
  const encoder = new BatchEncoder({ ...options, chat_template: chatTemplate });
  return DOCUMENTS.map((document) => {
    const line = { bytes: Buffer.from(JSON.stringify(document)), first_line: 1 };
    const { tokens, counts } = encoder.encode(line);
    return { tokens: [...tokens], counts: counts ? [...counts] : [...tokens].map(() => 1) };
  });
}

for (const packing of ['split', 'whole'] as const)
  t.test(`chats and texts, ${packing}: the same files for any number of threads`, async (t) => {
    const { objects, request } = await setup(t, LINES, JSONL);
    const data = {
      ...request.data,
      packing,
      chat_template: templates.chatml as string,
      validation_fraction: 0.1,
    };
    const made = [];
    for (const numThreads of [1, 3]) {
      const cacheDir = `${request.cache_dir}-${numThreads}`;
      const paths = await prepareTokens(objects, {
        ...request,
        data,
        cache_dir: cacheDir,
        num_threads: numThreads,
      });
      const names = await readdir(cacheDir, { recursive: true });
      t.equal(names.length, 5, 'no other file is left');
      const files = [
        paths.token_file,
        paths.validation_file ?? '',
        join(dirname(paths.token_file), 'summary.json'),
      ];
      made.push({ names, bytes: await Promise.all(files.map((file) => readFile(file))) });
      if (numThreads > 1) continue;

      const expected = expectedDocuments(data.chat_template);
      const training = await documentsOf(paths.token_file);
      const validation = await documentsOf(paths.validation_file!);
      t.equal(validation.length, DOCUMENTS.length / 10);
      const rest = training.map((document) => JSON.stringify(document));
      const split = validation.map((document) => JSON.stringify(document));
      const ordered = expected.map((document) => {
        const from = JSON.stringify(document) === rest[0] ? rest : split;
        return JSON.parse(from.shift() ?? 'null');
      });
      t.same(ordered, expected, 'documents are split off whole and stay in order');
      const { sequences } = await readTokenFile(paths.token_file);
      const lengths = expected.map(({ tokens }) => tokens.length);
      t.match(paths.summary, {
        documents: DOCUMENTS.length,
        tokens: lengths.reduce((sum, length) => sum + length, 0),
        targets: expected.reduce(
          (sum, { counts }) => sum + counts.filter((count, index) => count === 1 && index > 0).length,
          0,
        ),
        long_documents: lengths.filter((length) => length > 25).length,
        sequences: sequences.length,
      });
    }
    t.same(made[1], made[0]);
  });

t.test('documents without tokens do not appear in the files', async (t) => {
  const chatLine = (content: string) => {
    const messages = [
      { role: 'user', content: '' },
      { role: 'assistant', content },
    ];
    return JSON.stringify({ messages });
  };
  const answers = ['', 'abc', '', '', 'de', 'f', ''];
  const { objects, request } = await setup(t, Buffer.from(answers.map(chatLine).join('\n')), {
    ...JSONL,
    num_documents: answers.length,
    num_chats: answers.length,
  });
  const chatTemplate = '{% for m in messages %}{{ m.content }}{% endfor %}';
  for (const packing of ['split', 'whole'] as const) {
    const data = { ...request.data, tokenizer: 'bytes', chat_template: chatTemplate, packing };
    const { token_file } = await prepareTokens(objects, { ...request, data });
    t.same((await readTokenFile(token_file)).documents, [0, 3, 5], packing);
  }
});

t.test("chats in bytes: the rendered text, with the loss on the assistant's text", async (t) => {
  const { objects, request } = await setup(t, LINES, JSONL);
  const data = { ...request.data, tokenizer: 'bytes', chat_template: templates.plain as string };
  const { token_file } = await prepareTokens(objects, { ...request, data });
  const { tokens, counts } = (await documentsOf(token_file))[1]!;
  t.match(Buffer.from(tokens).toString(), /What is 1\?.*It is 1\. And more\./s);
  const learned = Buffer.from(tokens.filter((_, index) => counts[index] === 1)).toString();
  t.match(learned, /^ ?It is 1\. And more\./);
});

t.test('a text with a tokenizer is one document, whose tokens do not depend on the threads', async (t) => {
  const text = Buffer.from('The quick brown fox jumps, 12345 times;\nGrüße!\n'.repeat(6000));
  const { objects, request } = await setup(t, text, {});
  const options = {
    tokenizer: FILES,
    parse_special_tokens: false,
    chat_template: null,
    template_date: null,
    unit: null,
  };
  const encoded = new BatchEncoder(options).encode({
    bytes: text,
    first: true,
    last: true,
    after_line: false,
  });
  const files = [];
  for (const numThreads of [1, 3]) {
    const cacheDir = `${request.cache_dir}-${numThreads}`;
    const { token_file } = await prepareTokens(objects, {
      ...request,
      num_threads: numThreads,
      cache_dir: cacheDir,
    });
    files.push(await readFile(token_file));
    const { tokens, documents, sequences } = await readTokenFile(token_file);
    t.same(tokens, [...encoded.tokens]);
    t.same(documents, [0]);
    t.equal(
      sequences.length,
      Math.floor((tokens.length - 1) / 24),
      'the remainder is dropped, as with bytes',
    );
  }
  t.ok(files[1]!.equals(files[0]!));
  const whole = { ...request, data: { ...request.data, packing: 'whole' as const } };
  const { summary } = await prepareTokens(objects, whole);
  t.equal(summary.sequences, Math.ceil((summary.tokens - 1) / 24), 'whole keeps the remainder');
});

t.test('CR LF and LF line ends give the same tokens, in texts and in JSONL', async (t) => {
  const text = 'The quick brown fox jumps, 12345 times;\nGrüße!\n'.repeat(3000);
  const crlf = (content: string) => Buffer.from(content.replaceAll('\n', '\r\n'));
  const digestOf = async (content: Buffer, dataset: Partial<Dataset>) => {
    const { objects, request } = await setup(t, content, dataset);
    const data = { ...request.data, chat_template: templates.chatml as string };
    return (await prepareTokens(objects, { ...request, data })).tokens_digest;
  };
  t.equal(await digestOf(crlf(text), {}), await digestOf(Buffer.from(text), {}));
  t.equal(await digestOf(crlf(String(LINES)), JSONL), await digestOf(LINES, JSONL));
});

t.test('the digest covers both files and is stored with them', async (t) => {
  const { objects, request } = await setup(t, LINES, JSONL);
  const data = { ...request.data, chat_template: templates.chatml as string, validation_fraction: 0.1 };
  const made = await prepareTokens(objects, { ...request, data });
  const bytes = await Promise.all([made.token_file, made.validation_file!].map((path) => readFile(path)));
  const expected = createHash('sha256').update(Buffer.concat(bytes)).digest('hex');
  t.equal(made.tokens_digest, `sha256:${expected}`);
  t.same(await prepareTokens(objects, { ...request, data }), made, 'found in the cache');
});

t.test('the texts of a chat belong to one document of the dataset', async (t) => {
  const line = (name: string) => {
    const turns = ['1', '2'].flatMap((number) => [
      { role: 'user', content: name },
      { role: 'assistant', content: number },
    ]);
    return JSON.stringify({ messages: turns });
  };
  const bytes = Buffer.from([...'abcdefgh'].map((name) => `${line(name)}\n`).join('\n'));
  const { objects, request } = await setup(t, bytes, { ...JSONL, num_documents: 8, num_chats: 8 });
  const data = {
    ...request.data,
    tokenizer: 'bytes',
    packing: 'whole' as const,
    chat_template: '{% for m in messages %}{{ m.content }}{% endfor %}',
    chat: { turns: 'each' as const, reasoning: 'learn' as const },
    validation_fraction: 0.25,
  };
  const { token_file, validation_file, summary } = await prepareTokens(objects, { ...request, data });
  t.match(summary, { documents: 16, flaws: {} });
  const texts = async (file: string) =>
    (await documentsOf(file)).map(({ tokens }) => Buffer.from(tokens).toString());
  const [kept, held] = [await texts(token_file), await texts(validation_file!)];
  t.equal(held.length, 4);
  t.same(
    [...kept, ...held].sort(),
    [...'abcdefgh'].flatMap((name) => [`${name}1`, `${name}1${name}2`]),
  );
  const names = (all: string[]) => new Set(all.map(([name]) => name));
  t.equal(names(held).size, 2, 'both texts of a chat are held back');
});
