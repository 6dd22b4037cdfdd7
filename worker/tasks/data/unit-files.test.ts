// Tests the token files of preferences in bytes; preferences.test.ts tests their tokens.
import { readFile } from 'node:fs/promises';
import t, { type Test } from 'tap';
import { samplesPerEpoch, type Unit, unitsOf } from '../../../job-document/index.js';
import { prepared, readSequences } from '../../testing/prepared.js';
import { prepareTokens, type TokenRequest } from './prepare-tokens.js';

/** Inputs of a sequence. */
const LENGTH = 8;

interface Pair {
  prompt: string;
  chosen: string;
  rejected: string;
}
type Line = Pair | { prompt: string; completion: string; label: boolean };

async function setup(t: Test, lines: readonly Line[], unit: Unit) {
  const pairs = lines.filter((line) => 'chosen' in line).length;
  const { objects, request } = await prepared(t, {
    uploaded: Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n')),
    dataset: {
      format: 'jsonl',
      num_tokens: null,
      num_documents: lines.length,
      num_preferences: pairs,
      num_labelled: lines.length - pairs,
    },
  });
  const whole: TokenRequest = { ...request, unit, sequence_length: LENGTH };
  return {
    request: whole,
    prepare: (changes: Partial<TokenRequest> = {}) => prepareTokens(objects, { ...whole, ...changes }),
  };
}

const NUMBERED = Array.from({ length: 40 }, (_, i) => ({
  prompt: `${i}: `,
  chosen: 'y'.repeat(1 + (i % 4)),
  rejected: `n${i}`,
}));

const textOf = ({ tokens }: { tokens: number[] }) => Buffer.from(tokens).toString();

t.test('each completion with its prompt is a sequence; what is too long loses its end', async (t) => {
  const lines = [
    { prompt: 'ab', chosen: 'cd', rejected: 'efghijklmnop' },
    { prompt: '', chosen: 'xy', rejected: 'z1' },
  ];
  const { prepare } = await setup(t, lines, 'pair');
  const { token_file, summary } = await prepare();
  t.same(
    (await readSequences(token_file)).map((sequence) => [textOf(sequence), sequence.counts.join('')]),
    [
      ['abcd', '0011'],
      ['abefghijk', '001111111'],
      ['xy', '01'],
      ['z1', '01'],
    ],
  );
  t.match(summary, {
    documents: 4,
    tokens: 22,
    targets: 11,
    long_documents: 1,
    sequences: 4,
    validation_sequences: 0,
    without_targets: 0,
  });
});

t.test('a unit of which a completion has no target is left out and counted', async (t) => {
  const lines = [
    { prompt: 'ab', chosen: 'c', rejected: 'd' },
    { prompt: '123456789', chosen: 'c', rejected: 'd' },
    { prompt: 'ab', chosen: 'c', rejected: '' },
    { prompt: '', chosen: '', rejected: '' },
    { prompt: '12345678', chosen: 'last', rejected: 'LAST' },
  ];
  const pairs = await (await setup(t, lines, 'pair')).prepare();
  t.same((await readSequences(pairs.token_file)).map(textOf), ['abc', 'abd', '12345678l', '12345678L']);
  t.match(pairs.summary, { documents: 10, sequences: 4, without_targets: 6, targets: 4 });
  const labelled = await (await setup(t, lines, 'labelled')).prepare();
  t.same(
    (await readSequences(labelled.token_file)).map((sequence) => [textOf(sequence), sequence.counts[0]]),
    [
      ['abc', 1],
      ['abd', 0],
      ['abc', 1],
      ['12345678l', 1],
      ['12345678L', 0],
    ],
  );
  t.match(labelled.summary, { documents: 10, sequences: 5, without_targets: 5 });
});

t.test('whole units are held back, and their number is the one from which epochs are resolved', async (t) => {
  for (const unit of ['pair', 'labelled'] as const) {
    const { request, prepare } = await setup(t, NUMBERED, unit);
    const type = unit === 'pair' ? ('dpo' as const) : ('kto' as const);
    const train = { sequence_length: LENGTH, objective: { type, beta: 1 } };
    const all = (await readSequences((await prepare()).token_file)).map(textOf);
    const perUnit = unit === 'pair' ? 2 : 1;
    for (const validationFraction of [0.001, 0.1, 0.99]) {
      const data = { ...request.data, validation_fraction: validationFraction };
      const { token_file, validation_file, summary } = await prepare({ data });
      const training = (await readSequences(token_file)).map(textOf);
      const held = (await readSequences(validation_file as string)).map(textOf);
      t.same([...training, ...held].sort(), [...all].sort());
      const samples = samplesPerEpoch([request.dataset], data, train);
      t.equal(samples, training.length / perUnit);
      t.equal(held.length / perUnit, unitsOf(request.dataset, unit) - (samples ?? 0));
      t.match(summary, { sequences: training.length, validation_sequences: held.length });
      if (unit === 'pair')
        for (const [i, text] of [...training, ...held].entries())
          if (i % 2 === 0) t.equal(text.split(' ')[0], [...training, ...held][i + 1]?.split(' ')[0]);
    }
  }
});

t.test('the files depend on the unit, and not on the threads', async (t) => {
  const { prepare, request } = await setup(t, NUMBERED, 'pair');
  const files: Buffer[] = [];
  for (const numThreads of [1, 2, 3]) {
    const cacheDir = `${request.cache_dir}-${numThreads}`;
    const { token_file } = await prepare({ num_threads: numThreads, cache_dir: cacheDir });
    files.push(await readFile(token_file));
  }
  t.ok(files.every((file) => file.equals(files[0] as Buffer)));
  const paths: string[] = [];
  for (const unit of ['pair', 'labelled', 'pair'] as const) paths.push((await prepare({ unit })).token_file);
  t.equal(paths[0], paths[2]);
  t.not(paths[0], paths[1]);
});

t.test('data without anything to learn, or to hold back, is refused', async (t) => {
  const long = { prompt: '123456789', chosen: 'c', rejected: 'd' };
  const none = await setup(t, [long, long], 'pair');
  await t.rejects(none.prepare(), { code: 'no_targets', message: /left out 2 of 2 pairs.*first 9 tokens/ });
  const one = await setup(t, [NUMBERED[0] as Pair], 'pair');
  const data = { ...one.request.data, validation_fraction: 0.5 };
  await t.rejects(one.prepare({ data }), { code: 'dataset_too_small', message: /1 samples/ });
  const half = await setup(t, [long, NUMBERED[0] as Pair], 'pair');
  await t.rejects(half.prepare({ data: { ...half.request.data, validation_fraction: 0.5 } }), {
    code: 'no_targets',
    message: /left out 1 of 2 pairs/,
  });
  const missing = await setup(t, NUMBERED, 'pair');
  const dataset = { ...missing.request.dataset, num_preferences: 41, num_documents: 41 };
  await t.rejects(missing.prepare({ dataset }), { code: 'dataset_corrupt', message: /80 documents.* 82/ });
});

t.test('errors of a line have its number', async (t) => {
  const { objects, request } = await prepared(t, {
    uploaded: Buffer.from(
      ['a', 'bb']
        .map((content) => ({
          prompt: [{ role: 'user', content }],
          chosen: [{ role: 'assistant', content: 'c' }],
          rejected: [{ role: 'assistant', content: 'd' }],
        }))
        .map((line) => JSON.stringify(line))
        .join('\n'),
    ),
    dataset: { format: 'jsonl', num_tokens: null, num_documents: 2, num_preferences: 2, num_chats: 2 },
  });
  const chatTemplate =
    '{% for m in messages %}{{ m.content }}{% endfor %}{% if messages[0].content == "bb" and messages | length > 1 %}{{ raise_exception("odd") }}{% endif %}';
  const data = { ...request.data, chat_template: chatTemplate };
  await t.rejects(prepareTokens(objects, { ...request, data, unit: 'pair' }), {
    code: 'chat_template_invalid',
    message: /^line 2: .*it fails for a chat of 2 messages/,
  });
});
