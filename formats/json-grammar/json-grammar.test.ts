import { isDeepStrictEqual } from 'node:util';
import { Ajv } from 'ajv';
import t from 'tap';
import type { DecoderTable } from '../tokenizer/token-decoder.js';
import { ConstrainedAnswer, Grammars } from './constraint.js';
import { grammarOf } from './grammar.js';
import { DEAD, Matcher } from './matcher.js';
import { readSchema, SchemaFault } from './read-schema.js';
import { vocabularyOf } from './token-bytes.js';
import { isAllowed, type Vocabulary } from './vocabulary.js';

type Schema = Readonly<Record<string, unknown>>;

/** Schemas with values that satisfy them and values that do not. */
const SCHEMAS: Readonly<Record<string, { schema: Schema; valid: unknown[]; invalid: unknown[] }>> = {
  'any object': {
    schema: { type: 'object' },
    valid: [{}, { a: 1 }, { a: [{ b: null }, [[]], 'x', -1.5e-7, true] }, { '': 'é😀\n"\\\u0001' }],
    invalid: [[], 'text', 1, null],
  },
  properties: {
    schema: {
      type: 'object',
      title: 'A person',
      properties: {
        name: { type: 'string', description: 'Its name' },
        age: { type: 'integer' },
        'größe "m"': { type: 'number', default: 1 },
        married: { type: 'boolean' },
      },
      required: ['name', 'größe "m"'],
      additionalProperties: false,
    },
    valid: [
      { name: 'a', age: -3, 'größe "m"': 1.75, married: true },
      { name: '', 'größe "m"': 0 },
    ],
    invalid: [{}, { name: 'a' }, { name: 1, 'größe "m"': 1 }, { name: 'a', 'größe "m"': 1, other: 1 }],
  },
  'optional properties': {
    schema: { type: 'object', properties: { a: { type: 'null' }, b: { type: 'null' }, c: {} } },
    valid: [{}, { a: null }, { b: null }, { a: null, c: [1] }, { b: null, c: 'x' }],
    invalid: [{ a: 1 }, { b: 0 }],
  },
  arrays: {
    schema: {
      type: 'object',
      properties: {
        few: { type: 'array', items: { type: 'integer' }, minItems: 1, maxItems: 3 },
        many: { type: 'array', items: { type: 'array', items: { type: 'boolean' } }, minItems: 2 },
        none: { type: 'array', maxItems: 0 },
      },
      required: ['few', 'many'],
    },
    valid: [
      { few: [1], many: [[], [true]] },
      { few: [1, 2, 3], many: [[], [], [false, true]], none: [] },
    ],
    invalid: [
      { few: [], many: [[], []] },
      { few: [1, 2, 3, 4], many: [[], []] },
      { few: [1], many: [[]] },
      { few: [1], many: [[], []], none: [1] },
      { few: [1.5], many: [[], []] },
    ],
  },
  'lengths of strings': {
    schema: {
      type: 'object',
      properties: { s: { type: 'string', minLength: 2, maxLength: 3 }, t: { type: 'string', minLength: 1 } },
      required: ['s', 't'],
    },
    valid: [
      { s: 'ab', t: 'x' },
      { s: '😀é\n', t: '""' },
    ],
    invalid: [
      { s: 'a', t: 'x' },
      { s: 'abcd', t: 'x' },
      { s: 'ab', t: '' },
    ],
  },
  values: {
    schema: {
      type: 'object',
      properties: {
        color: { enum: ['red', 'rot', 'größer', null, 1, 10, [1, { a: 2 }]] },
        kind: { const: 'x' },
        filtered: { type: ['string', 'null'], enum: ['s', 1, null] },
      },
      required: ['color', 'kind', 'filtered'],
    },
    valid: [
      { color: 'größer', kind: 'x', filtered: null },
      { color: [1, { a: 2 }], kind: 'x', filtered: 's' },
      { color: 10, kind: 'x', filtered: 's' },
    ],
    invalid: [
      { color: 'ro', kind: 'x', filtered: 's' },
      { color: 'red', kind: 'y', filtered: 's' },
      { color: 'red', kind: 'x', filtered: 1 },
    ],
  },
  choices: {
    schema: {
      type: 'object',
      properties: {
        value: {
          anyOf: [
            { type: 'object', properties: { kind: { const: 'a' }, n: { type: 'integer' } }, required: ['n'] },
            { type: 'object', properties: { kind: { const: 'b' }, s: { type: 'string' } }, required: ['s'] },
            { type: ['integer', 'string'], maxLength: 2 },
          ],
        },
      },
      required: ['value'],
    },
    valid: [{ value: { kind: 'a', n: 1 } }, { value: { kind: 'b', s: '' } }, { value: 12 }, { value: 'ab' }],
    invalid: [{ value: { kind: 'a', s: '' } }, { value: 'abc' }, { value: null }],
  },
  recursion: {
    schema: {
      $ref: '#/$defs/node',
      $defs: {
        node: {
          type: 'object',
          properties: {
            value: { $ref: '#/$defs/a~1b%20c' },
            children: { type: 'array', items: { $ref: '#/$defs/node' } },
            next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] },
          },
          required: ['value'],
        },
        'a/b c': { type: 'integer' },
      },
    },
    valid: [{ value: 1, children: [{ value: 2, next: { value: 3, next: null } }] }],
    invalid: [
      { value: 1, children: [{ value: '2' }] },
      { value: 1, next: 2 },
    ],
  },
  maps: {
    schema: { type: 'object', additionalProperties: { type: 'array', items: { type: 'number' } } },
    valid: [{}, { a: [1.5, 2e10] }, { a: [], 'b"': [0] }],
    invalid: [{ a: 1 }, { a: ['x'] }],
  },
};

const printable = Array.from({ length: 0x5f }, (_, index) => String.fromCharCode(0x20 + index));
const WORDS = ['true', 'null', 'name', 'value', 'ab', '":', '"}', '","', '{"', ']}', '}]', '10', '.5', 'e+1'];

/** A byte-level tokenizer: characters stand for bytes. `</s>` is a special token, which has no text. */
function byteLevel(): DecoderTable {
  const plain = [...Array(256).keys()].filter(
    (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173),
  );
  const others = [...Array(256).keys()].filter((byte) => !plain.includes(byte));
  const characterOf = new Map(plain.map((byte) => [byte, String.fromCharCode(byte)]));
  for (const [index, byte] of others.entries()) characterOf.set(byte, String.fromCharCode(256 + index));
  const textOf = (bytes: Iterable<number>) => Array.from(bytes, (byte) => characterOf.get(byte)).join('');
  const texts = [...Array(256).keys()].map((byte) => textOf([byte]));
  for (const word of [...WORDS, ' ', '  ', '\n  ', '": ', ', "', 'größe', '😀', 'ü"', '\\u00'])
    texts.push(textOf(Buffer.from(word)));
  texts.push(textOf([0xc3]), textOf([0x9f, 0x65]), textOf([0xf0, 0x9f]), textOf([0x98, 0x80, 0x22]));
  return tableOf(texts, { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true });
}

/** A tokenizer in the manner of SentencePiece. */
function metaspace(): DecoderTable {
  const bytes = Array.from(
    { length: 256 },
    (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
  );
  const words = [
    ...printable.filter((character) => character !== ' '),
    '▁',
    '▁▁',
    ...WORDS,
    '▁"',
    '▁{',
    'ö',
    '世界',
  ];
  const parts = [
    { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
    { type: 'ByteFallback' },
    { type: 'Fuse' },
    { type: 'Strip', content: ' ', start: 1, stop: 0 },
  ];
  return tableOf([...bytes, ...words], { type: 'Sequence', decoders: parts });
}

function wordPiece(): DecoderTable {
  const words = printable.filter((character) => character !== ' ');
  return tableOf(['a', '## ', ...words.map((word) => `##${word}`), ...words, ...WORDS, '##ab', '##ü'], {
    type: 'WordPiece',
    prefix: '##',
    cleanup: false,
  });
}

/** The first token has no text. */
function tableOf(texts: readonly string[], decoder: object): DecoderTable {
  return { texts: new Map(texts.map((text, index) => [index + 1, text])), decoder };
}

const TOKENIZERS: Readonly<Record<string, { table: DecoderTable | null; size: number }>> = {
  bytes: { table: null, size: 256 },
  'byte-level': { table: byteLevel(), size: 300 },
  metaspace: { table: metaspace(), size: 450 },
  'word pieces': { table: wordPiece(), size: 320 },
};

function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function accepts(schema: unknown, text: string): boolean {
  const matcher = new Matcher(grammarOf(schema));
  let state = matcher.stateOf(matcher.start);
  for (const byte of Buffer.from(text)) {
    if (state === DEAD) return false;
    state = matcher.next(state, byte);
  }
  return state !== DEAD && matcher.isComplete(state);
}

const ajv = new Ajv({ strict: false });

for (const [name, { schema, valid, invalid }] of Object.entries(SCHEMAS)) {
  t.test(`${name}: values that satisfy the schema are texts of its grammar, others are not`, async (t) => {
    const validate = ajv.compile(schema);
    for (const value of valid) {
      t.ok(validate(value), JSON.stringify(value));
      // Values of an enum have one form.
      for (const indent of name === 'values' ? [undefined] : [undefined, 2, '\t'])
        t.ok(accepts(schema, JSON.stringify(value, null, indent)), JSON.stringify(value, null, indent));
    }
    for (const value of invalid) {
      if (typeof value === 'object' && value !== null && !('other' in value)) t.notOk(validate(value));
      t.notOk(accepts(schema, JSON.stringify(value)), JSON.stringify(value));
    }
    const text = JSON.stringify(valid[0]);
    for (let length = 0; length < text.length; length++) t.notOk(accepts(schema, text.slice(0, length)));
    t.notOk(accepts(schema, `${text} `), 'nothing follows');
  });
}

const HEAD = [0, 5, 0];

for (const [tokenizer, { table, size }] of Object.entries(TOKENIZERS)) {
  t.test(`${tokenizer}: any allowed tokens make a text that satisfies the schema`, async (t) => {
    const vocabulary = vocabularyOf(table, size);
    const grammars = new Grammars(vocabulary);
    for (const [name, { schema }] of Object.entries(SCHEMAS)) {
      const validate = ajv.compile(schema);
      const constraint = { choices: [{ head: HEAD, schema: JSON.stringify(schema) }] };
      const used = new Set<number>();
      for (let seed = 1; seed <= 12; seed++) {
        const answer = new ConstrainedAnswer(constraint, grammars);
        const steps = randomWalk(answer, vocabulary, size, randomFrom(seed));
        t.ok(answer.isComplete, `${name}: it ends`);
        t.ok(
          answer.allowed().every((word) => word === 0),
          'nothing follows',
        );
        const again = new ConstrainedAnswer(constraint, new Grammars(vocabulary));
        const isSame = steps.every(({ token, mask }, place) => {
          const same = place % 8 !== 0 || isDeepStrictEqual(again.allowed(), mask);
          again.push(token);
          used.add(token);
          return same;
        });
        t.ok(isSame, 'a mask is a function of the tokens');
        t.same(
          steps.slice(0, HEAD.length).map(({ token }) => token),
          HEAD,
        );
        t.notOk(
          table !== null && steps.slice(HEAD.length).some(({ mask }) => isAllowed(mask, 0)),
          'special tokens are not allowed',
        );
        const text = textOf(vocabulary, steps.slice(HEAD.length));
        t.ok(validate(JSON.parse(text)), `${name}: ${text}`);
      }
      t.ok(used.size > 10, 'the texts differ');
    }
  });
}

interface Step {
  token: number;
  mask: Uint32Array;
}

function randomWalk(
  answer: ConstrainedAnswer,
  vocabulary: Vocabulary,
  size: number,
  random: (below: number) => number,
): Step[] {
  const steps: Step[] = [];
  while (!answer.isComplete && steps.length < 4000) {
    const mask = answer.allowed();
    const allowed = [...Array(size).keys()].filter((token) => isAllowed(mask, token));
    const token = chosen(allowed, (id) => vocabulary.bytesOf(id), steps.length < 40, random);
    steps.push({ token, mask });
    answer.push(token);
  }
  return steps;
}

function textOf(vocabulary: Vocabulary, steps: readonly Step[]): string {
  const bytes = Buffer.concat(steps.map(({ token }) => vocabulary.bytesOf(token)));
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
}

/** Returns any token, or later one that leads to the end. */
function chosen(
  allowed: readonly number[],
  bytesOf: (token: number) => Uint8Array,
  isFree: boolean,
  random: (below: number) => number,
): number {
  const ending = ['"', '}', ']', ','].map((end) =>
    allowed.filter((token) => Buffer.from(bytesOf(token)).toString() === end),
  );
  const [first] = ending.find((tokens) => tokens.length > 0) ?? [];
  if (!isFree && first !== undefined) return first;
  const dark = allowed.filter((token) => !/^\s*$/.test(Buffer.from(bytesOf(token)).toString()));
  const from = !isFree && dark.length > 0 ? dark : allowed;
  return from[random(from.length)] as number;
}

t.test('of several functions, the drawn tokens decide', async (t) => {
  const grammars = new Grammars(vocabularyOf(null, 256));
  const head = (text: string) => [...Buffer.from(text)];
  const constraint = {
    choices: [
      {
        head: head('add'),
        schema: '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}',
      },
      { head: head('ad'), schema: '{"type":"object","additionalProperties":{"type":"null"}}' },
    ],
  };
  const after = (text: string) => {
    const answer = new ConstrainedAnswer(constraint, grammars);
    for (const token of head(text)) answer.push(token);
    const mask = answer.allowed();
    const allowed = [...Array(256).keys()].filter((token) => isAllowed(mask, token));
    return { text: Buffer.from(allowed).toString(), complete: answer.isComplete };
  };
  t.same(after('a'), { text: 'd', complete: false });
  t.same(after('ad'), { text: '\n d{', complete: false });
  t.same(after('ad{}'), { text: '', complete: true });
  t.same(after('add{'), { text: '\n "', complete: false });
  t.same(after('add{"'), { text: 'a', complete: false });
  t.same(after('add{"a":1}'), { text: '', complete: true });
  t.same(after('add{}'), { text: '', complete: false });
});

t.test('long texts stay a function of their tokens while states are given up', async (t) => {
  const grammars = new Grammars(vocabularyOf(null, 256));
  const schema = '{"type":"object","properties":{"s":{"type":"string","maxLength":6000}},"required":["s"]}';
  const answer = new ConstrainedAnswer({ choices: [{ head: [], schema }] }, grammars);
  for (const byte of Buffer.from('{"s":"')) answer.push(byte);
  let numAllowed = 0;
  for (let length = 0; length < 6000; length++) {
    numAllowed += isAllowed(answer.allowed(), 0x61) ? 1 : 0;
    answer.push(0x61);
  }
  t.equal(numAllowed, 6000);
  const rest = answer.allowed();
  t.same(
    [...Array(256).keys()].filter((token) => isAllowed(rest, token)),
    [0x22],
  );
});

t.test('schemas with very many readings of a text cost no more than others', async (t) => {
  const nested = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/x' } },
    required: ['a'],
    $defs: {
      x: {
        anyOf: ['b', 'c', 'd'].map((other) => ({
          type: 'object',
          properties: {
            a: { anyOf: [{ $ref: '#/$defs/x' }, { type: 'string' }] },
            [other]: { type: 'null' },
          },
          required: ['a'],
        })),
      },
    },
  };
  const text = `${'{"a":'.repeat(60)}"x"${'}'.repeat(60)}`;
  t.ok(accepts(nested, text));
});

t.test('a choice of itself is no further value', async (t) => {
  const loop = { anyOf: [{ $ref: '#/$defs/loop' }, { const: 'end' }] };
  const schema = { type: 'object', properties: { p: { $ref: '#/$defs/loop' } }, $defs: { loop } };
  t.ok(accepts(schema, '{"p": "end"}'));
  t.notOk(accepts(schema, '{"p": 1}'));
});

t.test('what a grammar cannot guarantee is refused by its name and place', async (t) => {
  const property = (value: unknown) => ({ type: 'object', properties: { p: value } });
  const deep = (levels: number): unknown => (levels === 0 ? {} : { type: 'array', items: deep(levels - 1) });
  const cases: [schema: unknown, pointer: string, message: RegExp][] = [
    [{ type: 'array' }, '', /type object/],
    [{ anyOf: [{ type: 'object' }, { type: 'null' }] }, '', /type object/],
    [{}, '', /type object/],
    [true, '', /type object/],
    [property({ type: 'string', pattern: '^a' }), '/properties/p/pattern', /keyword pattern/],
    [property({ type: 'string', format: 'date' }), '/properties/p/format', /keyword format/],
    [property({ type: 'integer', minimum: 1 }), '/properties/p/minimum', /keyword minimum/],
    [property({ type: 'integer', multipleOf: 2 }), '/properties/p/multipleOf', /keyword multipleOf/],
    [property({ not: {} }), '/properties/p/not', /keyword not/],
    [property({ if: {} }), '/properties/p/if', /keyword if/],
    [property({ oneOf: [] }), '/properties/p/oneOf', /keyword oneOf/],
    [property({ allOf: [] }), '/properties/p/allOf', /keyword allOf/],
    [property({ type: 'array', uniqueItems: true }), '/properties/p/uniqueItems', /keyword uniqueItems/],
    [property({ type: 'object', minProperties: 1 }), '/properties/p/minProperties', /keyword minProp/],
    [{ ...property({}), patternProperties: {} }, '/patternProperties', /keyword patternProperties/],
    [property({ type: 'string', maxItems: 1 }), '/properties/p/maxItems', /not a keyword of the type string/],
    [property({ maxLength: 1 }), '/properties/p/maxLength', /needs a type/],
    [property({ type: 'text' }), '/properties/p/type', /must be one of object/],
    [property({ type: [] }), '/properties/p/type', /must be one of object/],
    [property({ type: 'string', maxLength: 1_000_000 }), '/properties/p/maxLength', /up to 10000/],
    [property({ type: 'string', minLength: -1 }), '/properties/p/minLength', /up to 10000/],
    [property({ type: 'array', minItems: 2, maxItems: 1 }), '/properties/p/maxItems', /at least minItems/],
    [property({ enum: [] }), '/properties/p/enum', /at least one entry/],
    [property({ type: 'string', enum: [1] }), '/properties/p/enum', /no value of the type/],
    [property({ enum: ['a'], maxLength: 3 }), '/properties/p/maxLength', /beside enum/],
    [property({ $ref: '#/$defs/none' }), '/properties/p/$ref', /must name a part/],
    [property({ $ref: 'https://example.com/a' }), '/properties/p/$ref', /must name a part/],
    [property({ $ref: '#/$defs/__proto__' }), '/properties/p/$ref', /must name a part/],
    [property({ $ref: '#', type: 'object' }), '/properties/p/type', /beside \$ref/],
    [property(false), '/properties/p', /must be a schema/],
    [{ type: 'object', required: ['a'] }, '/required', /"a" is not one of the properties/],
    [{ type: 'object', required: ['toString'] }, '/required', /not one of the properties/],
    [{ ...property({ $ref: '#' }), required: ['p'] }, '', /requires itself/],
    [property(deep(300)), `/properties/p${'/items'.repeat(199)}`, /deeper than 200/],
    [{ type: 'object', properties: 1 }, '/properties', /must be an object/],
  ];
  for (const [schema, pointer, message] of cases) {
    try {
      readSchema(schema);
      t.fail(JSON.stringify(schema));
    } catch (error) {
      t.match(error, { pointer, message }, JSON.stringify(schema).slice(0, 100));
      t.ok(error instanceof SchemaFault);
    }
  }
  const many = Object.fromEntries(
    Array.from({ length: 6 }, (_, i) => [`p${i}`, { type: 'string', maxLength: 9000 }]),
  );
  t.throws(() => readSchema({ type: 'object', properties: many }), { message: /too large/ });
});

t.test('tokenizers that cannot write every text are refused', async (t) => {
  const letters = tableOf([...'abc'], { type: 'Fuse' });
  t.throws(() => vocabularyOf(letters, 4), { code: 'tokenizer_invalid', message: /no token for " !/ });
  const suffixed = tableOf(
    printable.flatMap((character) => [character, `${character}</w>`]),
    { type: 'BPEDecoder', suffix: '</w>' },
  );
  t.throws(() => vocabularyOf(suffixed, 300), { code: 'tokenizer_invalid', message: /depends on the next/ });
});
