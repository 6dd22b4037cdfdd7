import fc from 'fast-check';
import t from 'tap';
import { type Packer, SplitPacker, WholePacker } from './packing.js';

interface Document {
  counts: number[];
}

/** Generates documents as lists of their mask bits. */
const documents = fc.array(
  fc.array(fc.constantFrom(1, 1, 0), { minLength: 1, maxLength: 30 }).map((counts) => ({ counts })),
  { maxLength: 20 },
);

function pack(packer: Packer, given: readonly Document[]): void {
  for (const { counts } of given) packer.add(counts.length, Uint8Array.from(counts), true);
  packer.end();
}

/**
 * Returns the positions of the targets that a reader finds in the sequences, by the rule of
 * native/data/sequence_reader.h.
 */
function targetsOf(sequences: readonly number[], given: readonly Document[], length: number): number[] {
  const counts = given.flatMap((document) => document.counts.map((count, i) => count === 1 && i > 0));
  return sequences.flatMap((begin, index) => {
    const inputs = Math.min(length, (sequences[index + 1] ?? counts.length) - begin);
    return Array.from({ length: inputs }, (_, i) => begin + i + 1).filter((position) => counts[position]);
  });
}

function allTargets(given: readonly Document[]): number[] {
  return targetsOf([0], given, Number.MAX_SAFE_INTEGER);
}

t.test('split: every target is in exactly one sequence, and every sequence has a target', async (t) => {
  fc.assert(
    fc.property(documents, fc.integer({ min: 1, max: 12 }), (given, length) => {
      const sequences: number[] = [];
      pack(new SplitPacker(length, true, (begin) => sequences.push(begin)), given);
      t.same(targetsOf(sequences, given, length), allTargets(given));
      t.ok(sequences.every((begin) => begin % length === 0));
      t.ok(sequences.every((begin) => targetsOf([begin], given, length).length > 0));
    }),
  );
});

t.test('whole: every target is in exactly one sequence; only long documents are split', async (t) => {
  fc.assert(
    fc.property(documents, fc.integer({ min: 1, max: 12 }), (given, length) => {
      const sequences: number[] = [];
      pack(new WholePacker(length, (begin) => sequences.push(begin)), given);
      t.same(targetsOf(sequences, given, length), allTargets(given));
      let position = 0;
      for (const { counts } of given) {
        const [from, to] = [position, position + counts.length];
        position = to;
        const cuts = sequences.filter((begin) => begin > from && begin < to);
        t.ok(counts.length > length + 1 || cuts.length === 0, 'a document that fits is not split');
      }
    }),
  );
});

t.test('split without remainder: only sequences with all of their targets', async (t) => {
  for (const [tokens, expected] of [
    [8, []],
    [9, [0]],
    [16, [0]],
    [17, [0, 8]],
  ] as const) {
    const sequences: number[] = [];
    pack(new SplitPacker(8, false, (begin) => sequences.push(begin)), [
      { counts: new Array<number>(tokens).fill(1) },
    ]);
    t.same(sequences, expected, `${tokens} tokens`);
  }
});

t.test('the result does not depend on the pieces in which tokens arrive', async (t) => {
  const pieces = fc.array(fc.tuple(fc.integer({ min: 1, max: 40 }), fc.boolean()), { minLength: 1 });
  fc.assert(
    fc.property(pieces, fc.integer({ min: 1, max: 12 }), (given, length) => {
      const documents: number[] = [];
      for (const [index, [count, starts]] of given.entries()) {
        if (starts || index === 0) documents.push(count);
        else documents[documents.length - 1]! += count;
      }
      for (const packerOf of [
        (begins: number[]) => new SplitPacker(length, false, (begin) => begins.push(begin)),
        (begins: number[]) => new WholePacker(length, (begin) => begins.push(begin)),
      ]) {
        const [one, many]: [number[], number[]] = [[], []];
        pack(
          packerOf(one),
          documents.map((count) => ({ counts: new Array<number>(count).fill(1) })),
        );
        const pieced = packerOf(many);
        for (const [index, [count, starts]] of given.entries())
          pieced.add(count, null, starts || index === 0);
        pieced.end();
        t.same(many, one);
      }
    }),
  );
});
