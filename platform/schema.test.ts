/** The builder creates the same schemas as TypeBox, so TypeBox's types apply to them. */
import { spawnSync } from 'node:child_process';
import { type TSchema, Type as TypeBox } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import t from 'tap';
import { Check, Type } from './schema.js';

type Builder = Pick<typeof TypeBox, keyof typeof Type>;

/** Schemas of each kind, and values of which some fit. */
const CASES: [name: string, make: (type: Builder) => TSchema, values: unknown[]][] = [
  [
    'array',
    (type) => type.Array(type.Integer({ minimum: 1 }), { minItems: 1 }),
    [[1], [], [0], [1.5], 'x', { 0: 1 }],
  ],
  ['boolean', (type) => type.Boolean(), [true, false, 0, 'true', null]],
  ['literal', (type) => type.Literal('a'), ['a', 'b', 1]],
  ['literal number', (type) => type.Literal(3), [3, '3', 4]],
  ['null', (type) => type.Null(), [null, undefined, 0, '']],
  ['number', (type) => type.Number({ exclusiveMinimum: 0 }), [0, 0.1, '1', null]],
  [
    'object',
    (type) =>
      type.Object({ a: type.String(), b: type.Optional(type.Integer()) }, { additionalProperties: false }),
    [{ a: 'x' }, { a: 'x', b: 1 }, { b: 1 }, { a: 'x', c: 1 }, { a: 'x', b: 'y' }, [], null],
  ],
  ['open object', (type) => type.Object({ a: type.Null() }), [{ a: null, more: 1 }, {}, { a: 0 }]],
  [
    'record',
    (type) => type.Record(type.String(), type.Integer({ minimum: 0 })),
    [{}, { a: 1, b: 2 }, { a: -1 }, { a: 'x' }, []],
  ],
  ['string', (type) => type.String({ pattern: '^[a-f]+$', maxLength: 3 }), ['abc', 'abcd', 'x', '', 7]],
  ['union', (type) => type.Union([type.Literal('a'), type.Integer(), type.Null()]), ['a', 3, null, 'b', 1.5]],
  ['unsafe', (type) => type.Unsafe<'x'>({ type: 'string', enum: ['x'] }), ['x', 'y', 1]],
];

for (const [name, make, values] of CASES) {
  t.test(`${name}: a value fits if TypeBox accepts it`, async (t) => {
    const check = new Check(make(Type));
    const theirs = make(TypeBox);
    // TypeBox ignores enum, which only `Unsafe` passes on.
    const expected = (value: unknown) => (name === 'unsafe' ? value === 'x' : Value.Check(theirs, value));
    const fits = values.map((value) => check.fits(value));
    t.same(fits, values.map(expected));
    t.ok(fits.includes(true) && fits.includes(false));
  });
}

t.test('problems name their location; all of them only on request', async (t) => {
  const schema = Type.Object({ a: Type.Integer(), list: Type.Array(Type.String()) });
  const wrong = { a: 'x', list: ['fine', 3] };
  const first = new Check(schema);
  t.same(first.problems(), [], 'nothing was checked');
  t.notOk(first.fits(wrong));
  t.same(first.problems(), ['/a must be integer']);
  const every = new Check(schema, { every: true });
  t.notOk(every.fits(wrong));
  t.same(every.problems(), ['/a must be integer', '/list/1 must be string']);
  t.notOk(every.fits(7));
  t.same(every.problems(), ['/ must be object']);
  const strict = new Check(Type.Object({ a: Type.Null() }, { additionalProperties: false }));
  t.notOk(strict.fits({ a: null, b: 1 }));
  t.same(strict.problems(), ['/b is unknown']);
  t.ok(every.fits({ a: 1, list: [] }));
  t.same(every.problems(), []);
});

t.test('defaults are applied on request', async (t) => {
  const schema = Type.Object({ a: Type.Optional(Type.Integer({ default: 3 })) });
  const [withDefaults, without] = [{}, {}];
  t.ok(new Check(schema, { defaults: true }).fits(withDefaults));
  t.ok(new Check(schema).fits(without));
  t.same([withDefaults, without], [{ a: 3 }, {}]);
});

t.test('a rank loads neither TypeBox nor Ajv before it needs them', async (t) => {
  const rank = new URL('../worker/rank/run-rank.js', import.meta.url).href;
  const text = `
    import { createRequire } from 'node:module';
    await import(${JSON.stringify(rank)});
    const loaded = Object.keys(createRequire(${JSON.stringify(rank)}).cache);
    console.log(JSON.stringify(loaded.filter((path) => /ajv|typebox/.test(path))));
    process.exit();`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', text], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '', NODE_DEBUG: 'esm' },
    // Five megabytes on Node.js 24.
    maxBuffer: 2 ** 26,
  });
  t.same(JSON.parse(stdout), []);
  t.notMatch(stderr, /sinclair\/typebox/);
  t.match(stderr, /run-rank\.js/, 'modules are named there');
});
