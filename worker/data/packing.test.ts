import fc from 'fast-check';
import t from 'tap';
import { type Packer, SplitPacker, WholePacker } from './packing.js';

interface Document {
  counts: number[];
}

/** Documents as the lists of what counts in them. */
const documents = fc.array(
  fc.array(fc.constantFrom(1, 1, 0), { minLength: 1, maxLength: 30 }).map((counts) => ({ counts })),
  { maxLength: 20 },
);

function pack(packer: Packer, given: readonly Document[]): void {
  for (const { counts } of given) packer.add(counts.length, Uint8Array.from(counts), true);
  packer.end();
}

/** Places of the targets that a reader finds in the sequences, by the rule of native/data/sequence_reader.h. */
function targetsOf(sequences: readonly number[], given: readonly Document[], length: number): number[] {
  const counts = given.flatMap((document) => document.counts.map((count, i) => count === 1 && i > 0));
  return sequences.flatMap((begin, index) => {
    const inputs = Math.min(length, (sequences[index + 1] ?? counts.length) - begin);
    return Array.from({ length: inputs }, (_, i) => begin + i + 1).filter((place) => counts[place]);
  });
}

function allTargets(given: readonly Document[]): number[] {
  return targetsOf([0], given, Number.MAX_SAFE_INTEGER);
}

t.test('split: every target is in exactly one sequence, and none is without one', async (t) => {
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

t.test('whole: every target is in exactly one sequence; only long documents are cut', async (t) => {
  fc.assert(
    fc.property(documents, fc.integer({ min: 1, max: 12 }), (given, length) => {
      const sequences: number[] = [];
      pack(new WholePacker(length, (begin) => sequences.push(begin)), given);
      t.same(targetsOf(sequences, given, length), allTargets(given));
      let place = 0;
      for (const { counts } of given) {
        const [from, to] = [place, place + counts.length];
        place = to;
        const cuts = sequences.filter((begin) => begin > from && begin < to);
        t.ok(counts.length > length + 1 || cuts.length === 0, 'a document that has room is not cut');
      }
    }),
  );
});

t.test('split without a rest: as many sequences as have all their targets', async (t) => {
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

t.test('split does not depend on the pieces in which tokens come', async (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
      fc.integer({ min: 1, max: 12 }),
      (pieces, length) => {
        const [one, many]: number[][] = [[], []];
        const total = pieces.reduce((sum, piece) => sum + piece, 0);
        const whole = new SplitPacker(length, false, (begin) => one!.push(begin));
        whole.add(total, null, true);
        whole.end();
        const pieced = new SplitPacker(length, false, (begin) => many!.push(begin));
        for (const [index, piece] of pieces.entries()) pieced.add(piece, null, index === 0);
        pieced.end();
        t.same(many, one);
        t.equal(one!.length, Math.max(0, Math.floor((total - 1) / length)));
      },
    ),
  );
});
