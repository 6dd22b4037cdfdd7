import fc from 'fast-check';
import t from 'tap';
import { domainsOf, type FreeWorker, nearest, nearestTo } from './nearest.js';
import type { Placement } from './types.js';

/** Workers by path and free slots, as `{'a/n1': 2}`; the last name is that of the worker. */
function workersOf(free: Record<string, number>): FreeWorker[] {
  return Object.entries(free).map(([path, slots]) => {
    const names = path.split('/');
    const id = names.at(-1) ?? '';
    return { id, free: slots, gpu_bytes: null, domains: domainsOf(names.slice(0, -1)) };
  });
}

const textOf = (placements: Placement[]) =>
  placements.map(({ worker_id, ranks }) => `${worker_id}:${ranks}`).join(' ');

const chosen = (free: Record<string, number>, ranks: number) => textOf(nearest(workersOf(free), ranks));

t.test('the smallest domain with room for all ranks, and of several the fullest', async (t) => {
  const free = { 'a/w1': 4, 'a/w2': 4, 'b/w3': 3, 'b/w4': 2, 'c/w5': 8 };
  t.equal(chosen(free, 1), 'w4:1');
  t.equal(chosen(free, 4), 'w1:4', 'a machine, though another domain is fuller');
  t.equal(chosen({ ...free, 'c/w5': 4 }, 5), 'w3:3 w4:2');
  t.equal(chosen({ ...free, 'c/w5': 4 }, 6), 'w1:4 w2:2');
});

t.test('more ranks than a domain has room for fill the emptiest ones', async (t) => {
  const free = { 'a/w1': 4, 'a/w2': 2, 'b/w3': 3, 'c/w4': 2, 'c/w5': 2 };
  t.equal(chosen(free, 8), 'w1:4 w2:2 w4:2', 'the rest goes to the fullest machine with room');
  t.equal(chosen(free, 9), 'w1:4 w2:2 w3:3');
  t.equal(chosen(free, 13), 'w1:4 w2:2 w4:2 w5:2 w3:3', 'ranks of a domain are neighbours');
});

t.test('domains within domains', async (t) => {
  const free = { 'a/n1/w1': 1, 'a/n2/w2': 1, 'a/n1/w3': 1, 'b/n3/w4': 1, 'b/n4/w5': 1 };
  t.equal(chosen(free, 3), 'w1:1 w3:1 w2:1');
  t.equal(chosen({ ...free, 'b/n4/w6': 1 }, 2), 'w1:1 w3:1');
});

t.test('workers that know no domain are one', async (t) => {
  t.equal(chosen({ w0: 1, w1: 1, w2: 1, 'a/w3': 1, 'a/w4': 1 }, 2), 'w3:1 w4:1');
  t.equal(chosen({ w1: 1, w2: 2, 'a/w3': 1 }, 3), 'w2:2 w1:1');
});

t.test('a job grows in the smallest domains of its workers first', async (t) => {
  const free = workersOf({ 'a/n1/w1': 1, 'a/n2/w2': 2, 'b/n3/w3': 4, 'b/n4/w4': 1 });
  const grown = (own: string[][], ranks: number) => textOf(nearestTo(own.map(domainsOf), free, ranks));
  t.equal(grown([['a', 'n1']], 1), 'w1:1');
  t.equal(grown([['a', 'n1']], 2), 'w1:1 w2:1');
  t.equal(grown([['a', 'n1']], 5), 'w1:1 w2:2 w3:2');
  t.equal(grown([['b', 'n5']], 1), 'w4:1');
  t.equal(grown([['c', 'n6']], 4), 'w3:4');
  t.equal(grown([['a', 'n1'], ['b']], 4), 'w1:1 w3:3');
  t.equal(grown([], 8), 'w3:4 w4:1 w2:2 w1:1');
  t.throws(() => grown([['a', 'n1']], 9), /no free slot is left/);
});

const pools = fc.uniqueArray(
  fc.record({
    id: fc.integer({ min: 0, max: 99 }).map((number) => `w${number}`),
    free: fc.integer({ min: 1, max: 8 }),
    gpu_bytes: fc.constantFrom(null, 16, 80),
    domains: fc.constantFrom([], ['a'], ['a', 'n1'], ['a', 'n2'], ['b', 'n3'], ['b']).map(domainsOf),
  }),
  { selector: ({ id }) => id, minLength: 1, maxLength: 12 },
);

t.test(
  'every rank gets a free slot, in one domain if one has room, whatever the order of workers',
  async (t) => {
    const own = fc.constantFrom<string[][]>([], [['a', 'n1']], [['a', 'n2'], ['b']]);
    fc.assert(
      fc.property(pools, fc.integer({ min: 1, max: 40 }), own, (workers, some, paths) => {
        const room = workers.reduce((sum, { free }) => sum + free, 0);
        const ranks = Math.min(some, room);
        const placed = nearest(workers, ranks);
        const grown = nearestTo(paths.map(domainsOf), workers, ranks);
        t.same(nearest([...workers].reverse(), ranks), placed);
        for (const placements of [placed, grown]) {
          const used = new Map(placements.map(({ worker_id, ranks: here }) => [worker_id, here]));
          t.equal(used.size, placements.length, 'no worker twice');
          t.equal(
            [...used.values()].reduce((sum, here) => sum + here, 0),
            ranks,
          );
          t.ok(workers.every(({ id, free }) => (used.get(id) ?? 0) <= free));
        }
        const zones = new Map<string | undefined, number>();
        for (const { free, domains } of workers) zones.set(domains[1], (zones.get(domains[1]) ?? 0) + free);
        const byId = new Map(workers.map(({ id, domains }) => [id, domains[1]]));
        const used = new Set(placed.map(({ worker_id }) => byId.get(worker_id)));
        t.ok(used.size === 1 || Math.max(...zones.values()) < ranks, 'no domain has room for all');
      }),
      { numRuns: 300 },
    );
  },
);
