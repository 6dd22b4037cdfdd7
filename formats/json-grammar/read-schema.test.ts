import t from 'tap';
import { readSchema, SchemaFault } from './read-schema.js';

t.test('what a grammar cannot guarantee is refused by its name and location', async (t) => {
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
