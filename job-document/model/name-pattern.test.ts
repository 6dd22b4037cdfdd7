import * as fc from 'fast-check';
import t from 'tap';
import { LIMITS } from './families/limits.js';
import { MAX_CHARACTERS, NamePattern } from './name-pattern.js';
import { type ParamKind, paramName } from './params.js';

const kind = (name: string, layers: number, experts: number | null): ParamKind => ({
  name,
  layers,
  experts,
  shape: [1],
  numel: 1,
  decays: true,
  frozen: false,
  quantization: null,
});

const KINDS = [
  kind('model.norm.weight', 1, null),
  kind('model.layers.{}.input_layernorm.weight', 130, null),
  kind('model.layers.{}.moe.experts.{}.w1.weight', 13, 112),
];

/** Returns the matching names, each tested alone with a regular expression. */
function oneByOne(pattern: string, { name, layers, experts }: ParamKind): string[] {
  const source = pattern.replaceAll('.', '\\.').replaceAll('*', '.*').replaceAll('?', '.');
  const expression = new RegExp(`^${source}$`);
  return Array.from({ length: layers }, (_, layer) =>
    Array.from({ length: experts ?? 1 }, (_, expert) =>
      Number(expression.test(paramName({ name }, layer, expert))),
    ).join(''),
  );
}

function byKind(pattern: string, paramKind: ParamKind): string[] {
  const rows = new NamePattern(pattern).rowsOf(paramKind);
  return Array.from({ length: paramKind.layers }, (_, layer) =>
    Array.from({ length: paramKind.experts ?? 1 }, (_, expert) => {
      const word = rows[layer]?.[expert >> 5] ?? 0;
      return (word >>> (expert & 31)) & 1;
    }).join(''),
  );
}

t.test('all names of a kind match as each does alone', async (t) => {
  const parts = ['*', '*', '?', '1', '11', '.', 'w1', 'model', 'layers.', '.moe.experts.', 'weight', 'e'];
  const patterns = fc.array(fc.constantFrom(...parts), { maxLength: 9 }).map((chosen) => chosen.join(''));
  const cut = fc
    .tuple(fc.constantFrom(...KINDS), fc.nat(12), fc.nat(111), fc.array(fc.nat(40), { maxLength: 4 }))
    .map(([paramKind, layer, expert, positions]) => {
      const characters = [...paramName(paramKind, layer, expert)];
      for (const [i, position] of positions.entries())
        if (position < characters.length) characters[position] = i % 2 === 0 ? '*' : '?';
      return characters.join('');
    });
  let matched = 0;
  fc.assert(
    fc.property(fc.oneof(patterns, cut), (pattern) => {
      for (const paramKind of KINDS) {
        const expected = oneByOne(pattern, paramKind).join();
        t.equal(byKind(pattern, paramKind).join(), expected, pattern);
        matched += expected.replaceAll(/[^1]/g, '').length;
      }
    }),
    { numRuns: 150, seed: 7 },
  );
  t.ok(matched > 1000, `${matched} names matched`);
});

t.test('a pattern longer than every name matches none', async (t) => {
  const longest = paramName(
    { name: 'model.layers.{}.block_sparse_moe.experts.{}.w1.weight' },
    LIMITS.layers.max - 1,
    LIMITS.experts.max - 1,
  );
  t.ok(longest.length <= MAX_CHARACTERS, longest);
  const paramKind = kind('{}', 1, null);
  t.strictSame(new NamePattern('?'.repeat(MAX_CHARACTERS + 1)).rowsOf(paramKind), []);
  const whole = kind('a'.repeat(MAX_CHARACTERS), 1, null);
  for (const pattern of ['?'.repeat(MAX_CHARACTERS), `${'a*'.repeat(MAX_CHARACTERS)}`])
    t.equal(new NamePattern(pattern).rowsOf(whole)[0]?.[0], 1, pattern);
});
