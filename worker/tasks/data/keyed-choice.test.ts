import t from 'tap';
import { KeyedChoice } from './keyed-choice.js';

function chosen(seed: number, count: number, number: number): number[] {
  const choice = new KeyedChoice(seed, count, number);
  return Array.from({ length: count }, (_, index) => index).filter((index) => choice.has(index));
}

t.test('exactly the requested number is chosen', async (t) => {
  for (const count of [1, 2, 3, 10, 64, 65, 1000])
    for (const number of [0, 1, Math.floor(count / 2), count])
      t.equal(chosen(7, count, number).length, number, `${number} of ${count}`);
});

t.test('the choice is spread over the range and depends on all bits of the seed', async (t) => {
  const choices = [0, 1, 2, 2 ** 32, 2 ** 40].map((seed) => chosen(seed, 10_000, 1000));
  for (const [index, one] of choices.entries()) {
    for (let tenth = 0; tenth < 10; tenth++) {
      const inside = one.filter((position) => Math.floor(position / 1000) === tenth).length;
      t.ok(inside > 50 && inside < 150, `${inside} of 100`);
    }
    for (const other of choices.slice(0, index)) {
      const both = one.filter((position) => other.includes(position)).length;
      t.ok(both < 200, `${both} of 1000 in both, 100 expected`);
    }
  }
});

t.test('a larger choice contains the smaller one', async (t) => {
  const more = new Set(chosen(3, 500, 50));
  t.ok(chosen(3, 500, 20).every((index) => more.has(index)));
});

t.test('the choice is part of the contract and never changes between versions', async (t) => {
  t.same(chosen(1, 40, 4), [6, 18, 19, 38]);
});
