type Schema = Readonly<Record<string, unknown>>;

/** Schemas with values that satisfy them and values that do not. */
export const SCHEMAS: Readonly<Record<string, { schema: Schema; valid: unknown[]; invalid: unknown[] }>> = {
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
