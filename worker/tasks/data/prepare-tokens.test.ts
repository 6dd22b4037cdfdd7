import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { samplesPerEpoch } from '../../../job-document/index.js';
import { prepared, readTokenFile } from '../../testing/prepared.js';
import { prepareTokens } from './prepare-tokens.js';

const TEXT = Buffer.from('Grüße, 世界\n'.repeat(1000));

const setup = (t: Test, stored: Uint8Array = TEXT) => prepared(t, { uploaded: TEXT, stored });
const read = readTokenFile;

t.test('each byte becomes a token of one document, split every sequence_length', async (t) => {
  const { objects, request } = await setup(t);
  const { token_file, validation_file } = await prepareTokens(objects, request);
  t.equal(validation_file, null);
  const { header, tokens, sequences, documents, counts } = await read(token_file);
  t.same(tokens, [...TEXT]);
  t.same(documents, [0]);
  t.ok(counts.every((count) => count === 1));
  const length = Math.floor((TEXT.length - 1) / 100);
  t.same(
    sequences,
    Array.from({ length }, (_, i) => 100 * i),
  );
  t.match(header, { token_bytes: 2, sequence_length: 100, num_sequences: length });
  t.equal((await readdir(request.cache_dir)).length, 1);
});

t.test(
  'sequences of 131,072 tokens: texts are split, and documents are whole in the order or by best fit',
  async (t) => {
    const length = 131_072;
    const text = Buffer.alloc(2 * length + 5, 'long text ');
    const split = await prepared(t, { uploaded: text });
    const whole = await prepareTokens(split.objects, { ...split.request, sequence_length: length });
    t.match(await read(whole.token_file), { header: { sequence_length: length }, sequences: [0, length] });

    const documents = [100_000, 200_000, 31_000].map((bytes) => 'x'.repeat(bytes));
    const lines = Buffer.from(
      documents.map((document) => `${JSON.stringify({ text: document })}\n`).join(''),
    );
    const dataset = { format: 'jsonl', num_documents: documents.length } as const;
    const { objects, request } = await prepared(t, { uploaded: lines, dataset });
    for (const [packing, count] of [
      ['whole', 3],
      ['fit', 3],
    ] as const) {
      const data = { ...request.data, packing };
      const { token_file } = await prepareTokens(objects, { ...request, data, sequence_length: length });
      const { sequences, tokens } = await read(token_file);
      const lengths = sequences.map((begin, i) => (sequences[i + 1] ?? tokens.length) - begin);
      t.equal(sequences.length, count, `${packing}: ${lengths}`);
      t.ok(Math.max(...lengths) <= length + 1, `${packing}: ${lengths}`);
    }
  },
);

t.test('the validation split copies its share of the sequences and removes them from training', async (t) => {
  const { objects, request } = await setup(t);
  const data = { ...request.data, validation_fraction: 0.1 };
  const paths = await prepareTokens(objects, { ...request, data });
  const [training, validation] = [await read(paths.token_file), await read(paths.validation_file!)];
  t.same(training.tokens, [...TEXT], 'all tokens stay; the list of sequences selects which are read');
  const all = Math.floor((TEXT.length - 1) / 100);
  t.equal(validation.sequences.length, Math.round(all / 10));
  t.equal(training.sequences.length + validation.sequences.length, all);
  t.same(validation.documents, validation.sequences, 'targets of a sequence are not in the next one');
  const aside = Array.from({ length: all }, (_, i) => 100 * i).filter(
    (position) => !training.sequences.includes(position),
  );
  t.same(
    validation.tokens,
    aside.flatMap((position) => [...TEXT.subarray(position, position + 101)]),
  );
  t.ok(validation.counts.every((count) => count === 1));

  const other = await prepareTokens(objects, { ...request, data: { ...data, seed: 2 } });
  t.not(other.token_file, paths.token_file);
  t.notSame((await read(other.token_file)).sequences, training.sequences, 'the seed decides');
  const plain = await prepareTokens(objects, { ...request, data: { ...request.data, seed: 2 } });
  t.same(plain, await prepareTokens(objects, request), 'without a validation split the seed has no effect');
});

t.test('the number of sequences is the one from which epochs are resolved', async (t) => {
  const { objects, request } = await setup(t);
  for (const packing of ['split', 'whole', 'fit'] as const) {
    for (const validationFraction of [0, 0.001, 0.1]) {
      const data = { ...request.data, packing, validation_fraction: validationFraction };
      const { token_file } = await prepareTokens(objects, { ...request, data });
      const { sequences } = await read(token_file);
      const expected = samplesPerEpoch([request.dataset], data, { sequence_length: request.sequence_length });
      t.equal(sequences.length, expected, `${packing}, ${validationFraction} for validation`);
    }
  }
});

t.test('data that is too small is refused and leaves no file', async (t) => {
  const { objects, request } = await setup(t);
  const data = { ...request.data, validation_fraction: 0.1 };
  for (const [sequenceLength, fraction] of [
    [TEXT.length, 0],
    [TEXT.length - 1, 0.1],
  ] as const) {
    const small = {
      ...request,
      sequence_length: sequenceLength,
      data: { ...data, validation_fraction: fraction },
    };
    await t.rejects(prepareTokens(objects, small), { code: 'dataset_too_small' });
    t.strictSame(await readdir(request.cache_dir), []);
  }
});

t.test('a prepared file is found without the object store', async (t) => {
  const { objects, request } = await setup(t);
  const paths = await prepareTokens(objects, request);
  await objects.delete([request.object_key]);
  t.same(await prepareTokens(objects, request), paths);
});

t.test('a file of the wrong size is rebuilt, also by several processes at once', async (t) => {
  const { objects, request } = await setup(t);
  const paths = await prepareTokens(objects, request);
  const { token_file } = paths;
  const whole = await readFile(token_file);
  for (const damaged of [Buffer.from('cut short'), whole.subarray(0, -1), Buffer.alloc(0)]) {
    await writeFile(token_file, damaged);
    const made = await Promise.all(
      [1, 2, 3].map((id) => prepareTokens(objects, { ...request, attempt: `${id}` })),
    );
    t.strictSame(made, [paths, paths, paths]);
    t.ok((await readFile(token_file)).equals(whole));
    t.equal((await readdir(request.cache_dir)).length, 1);
  }
});

t.test('bytes that differ from the upload are refused and leave no file', async (t) => {
  const damaged = Buffer.from(TEXT);
  damaged[100]! ^= 1;
  for (const stored of [damaged, TEXT.subarray(1), Buffer.alloc(0)]) {
    const { objects, request } = await setup(t, stored);
    await t.rejects(prepareTokens(objects, request), { code: 'dataset_corrupt' });
    t.strictSame(await readdir(request.cache_dir), []);
  }
});

t.test('a missing object is an error of the object store', async (t) => {
  const { objects, request } = await setup(t);
  await objects.delete([request.object_key]);
  await t.rejects(prepareTokens(objects, request), { code: 'object_not_found' });
});

t.test('a cache that cannot be written is an error of the file system', async (t) => {
  const { objects, request } = await setup(t);
  await mkdir(join(request.cache_dir, '..'), { recursive: true });
  await writeFile(request.cache_dir, 'a file where the directory should be');
  await t.rejects(prepareTokens(objects, request), { code: /EEXIST|ENOTDIR/ });
});
