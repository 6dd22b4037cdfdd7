import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { readTokenFile } from '../../testing/prepared.js';
import { bestFit, FitFile } from './fit.js';
import { TokenFileWriter } from './token-file-writer.js';

const sum = (values: readonly number[]) => values.reduce((all, each) => all + each, 0);

t.test('best fit decreasing: the longest first, to the fullest bin with room', async (t) => {
  t.same(bestFit([3, 5, 9, 4, 1, 6], 10), [
    [2, 4],
    [5, 3],
    [1, 0],
  ]);
  t.same(bestFit([], 10), []);
  t.same(bestFit([10, 10], 10), [[0], [1]]);
});

t.test('every item is in one bin, no bin is too full, and no two bins fit into one', async (t) => {
  const lengths = fc.array(fc.integer({ min: 1, max: 100 }), { maxLength: 60 });
  fc.assert(
    fc.property(lengths, (given) => {
      const bins = bestFit(given, 100);
      t.same(
        bins.flat().sort((a, b) => a - b),
        given.map((_, index) => index),
      );
      const filled = bins.map((bin) => sum(bin.map((item) => given[item]!))).sort((a, b) => a - b);
      t.ok(filled.every((each) => each <= 100));
      t.ok(filled.length < 2 || filled[0]! + filled[1]! > 100);
    }),
  );
});

interface Written {
  tokens: readonly number[];
  counts: readonly number[];
}

const directory = mkdtempSync(join(tmpdir(), 'zerofleet-fit-'));
t.teardown(() => rmSync(directory, { recursive: true, force: true }));
let files = 0;

/** Writes documents in pieces, and returns the documents of each sequence. */
async function fitted(
  given: readonly Written[],
  length: number,
  pieceOf: () => number,
  limits?: { tokens: number; documents: number },
) {
  const path = join(directory, `${files++}`);
  const file = new FitFile(
    new TokenFileWriter(path, { token_bytes: 4, sequence_length: length }),
    length,
    limits,
  );
  for (const { tokens, counts } of given) {
    for (let begin = 0; begin < tokens.length; ) {
      const end = Math.min(tokens.length, begin + pieceOf());
      file.append(
        Uint32Array.from(tokens.slice(begin, end)),
        Uint8Array.from(counts.slice(begin, end)),
        begin === 0,
      );
      begin = end;
    }
  }
  file.end();
  const { useful_tokens } = file.writer.finish();
  const { tokens, documents, counts, sequences } = await readTokenFile(path);
  const ends = [...documents.slice(1), tokens.length];
  const texts = documents.map((begin, i) => ({
    begin,
    tokens: tokens.slice(begin, ends[i]),
    counts: counts.slice(begin, ends[i]),
  }));
  const nextOf = (i: number) => sequences[i + 1] ?? tokens.length;
  const inputs = sequences.map((begin, i) => Math.min(length, nextOf(i) - begin));
  t.equal(useful_tokens, sum(inputs));
  return {
    withoutTargets: file.withoutTargets,
    sequences: sequences.map((begin, i) =>
      texts.filter((text) => text.begin >= begin && text.begin < nextOf(i)),
    ),
  };
}

/** Returns the targets after their prefixes in a document, for each part of it that a sequence holds. */
const targetsOf = ({ tokens, counts }: Written, length: number) =>
  tokens.flatMap((_, i) => {
    if (i === 0 || counts[i] === 0) return [];
    const begin = Math.floor((i - 1) / length) * length;
    return [tokens.slice(begin, i + 1).join(' ')];
  });

t.test(
  'each target is learned once, after the tokens before it, in sequences without padding where possible',
  async (t) => {
    const word = fc.tuple(fc.integer({ min: 0, max: 99_999 }), fc.constantFrom(1, 1, 0));
    const documents = fc.array(fc.array(word, { minLength: 1, maxLength: 30 }), { maxLength: 20 });
    const limits = fc.constantFrom(undefined, { tokens: 20, documents: 100 }, { tokens: 1000, documents: 3 });
    await fc.assert(
      fc.asyncProperty(documents, fc.integer({ min: 1, max: 12 }), limits, async (words, length, limit) => {
        const given = words.map((each) => ({
          tokens: each.map(([token]) => token),
          counts: each.map(([, counts]) => counts as number),
        }));
        const whole = await fitted(given, length, () => 1000, limit);
        const pieces = [1, 3, 2, 7];
        let piece = 0;
        t.same(await fitted(given, length, () => pieces[piece++ % 4]!, limit), whole, 'pieces do not count');
        for (const sequence of whole.sequences) {
          t.ok(sequence.length > 0);
          t.ok(sum(sequence.map(({ tokens }) => tokens.length)) <= length + 1);
          for (const text of sequence)
            t.ok(targetsOf(text, length).length > 0, 'every document is learned from');
        }
        const learned = whole.sequences.flat().flatMap((text) => targetsOf(text, length));
        t.same(learned.sort(), given.flatMap((text) => targetsOf(text, length)).sort());
      }),
      { numRuns: 60 },
    );
  },
);

t.test('a long document is read in parts, whose remainder others join', async (t) => {
  const ones = (count: number) => new Array<number>(count).fill(1);
  const long = { tokens: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], counts: ones(10) };
  const short = { tokens: [21, 22, 23], counts: ones(3) };
  const unlearned = { tokens: [31, 32], counts: [1, 0] };
  const { sequences, withoutTargets } = await fitted([long, short, unlearned], 4, () => 4);
  t.same(
    sequences.map((sequence) => sequence.map(({ tokens }) => tokens)),
    [
      [[1, 2, 3, 4, 5]],
      [[5, 6, 7, 8, 9]],
      [
        [21, 22, 23],
        [9, 10],
      ],
    ],
  );
  t.equal(withoutTargets, 1);
});
