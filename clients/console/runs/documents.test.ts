import fc from 'fast-check';
import t from 'tap';
import { agreement, differences, fieldsOf, shortNames } from './documents.js';

t.test('fields of documents, by pointers', async (t) => {
  t.same(
    [...fieldsOf({ a: { b: 1, 'c/d~': [1, 2] }, e: null })],
    [
      ['/a/b', 1],
      ['/a/c~1d~0', [1, 2]],
      ['/e', null],
    ],
  );
});

t.test('what differs', async (t) => {
  const base = { name: 'a', train: { lr: 1, betas: [0.9, 0.95] } };
  t.same(differences([base, structuredClone(base)]), []);
  t.same(differences([base, { ...base, train: { lr: 2, betas: [0.9, 0.95], adapter: { rank: 4 } } }]), [
    { pointer: '/train/lr', values: [1, 2] },
    { pointer: '/train/adapter/rank', values: [undefined, 4] },
  ]);
});

t.test('a document differs from another exactly where it was changed', async () => {
  const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean());
  fc.assert(
    fc.property(fc.dictionary(fc.string({ minLength: 1 }), leaf, { minKeys: 1 }), fc.nat(), (fields, at) => {
      const names = Object.keys(fields);
      const name = names[at % names.length] ?? '';
      const changed = { ...fields, [name]: [fields[name]] };
      const [found, ...others] = differences([{ in: fields }, { in: changed }]);
      return others.length === 0 && found?.values[0] === fields[name];
    }),
  );
});

t.test('digests say until where runs are equal', async (t) => {
  const proofs = (text: string) =>
    [...text].map((stateDigest, index) => ({ step: (index + 1) * 10, state_digest: stateDigest }));
  t.same(agreement([proofs('abc'), proofs('abc')]), { equal_until: 30, differs_at: null });
  t.same(agreement([proofs('abcd'), proofs('abx')]), { equal_until: 20, differs_at: 30 });
  t.same(
    agreement([proofs('abc'), proofs('xbc')]),
    { equal_until: null, differs_at: 10 },
    'equal again is no proof',
  );
  t.same(agreement([proofs('abc'), proofs('abc'), proofs('ab').reverse()]), {
    equal_until: 20,
    differs_at: null,
  });
  t.same(agreement([proofs('abc'), []]), { equal_until: null, differs_at: null });
});

t.test('fields have short names where these are unique', async (t) => {
  const pointers = ['/train/optimizer/lr', '/train/seed', '/data/seed'];
  t.strictSame(shortNames(pointers), ['lr', 'train.seed', 'data.seed']);
});
