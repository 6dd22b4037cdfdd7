/** Generates values from the schemas of the contract: valid ones, boundary values, and mutated ones. */
import fc, { type Arbitrary } from 'fast-check';

export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  /** For objects, in schemas that also allow a string. */
  then?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  prefixItems?: Schema[];
  pattern?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  minProperties?: number;
  maxProperties?: number;
  uniqueItems?: boolean;
}

const ID_PATTERN = /^\^([a-z]+)_\[0-9A-HJKMNP/;
const S3 = 's3://';
const DEEPEST = 8;
const MAX_ITEMS = 4;

/** Placeholder of an id: the run replaces it with an existing id of this kind, if any. */
export const idToken = (kind: string, n: number) => `@@${kind}@@${n}`;
export const ID_TOKEN = /@@([a-z]+)@@(\d+)/g;

/** The bucket from which the server of a run may copy. */
export const OPEN_BUCKET = 'open';
/** Keys in it: of a text, of lines, of a model folder, of a tokenizer, and of nothing. */
export const OPEN_KEYS = {
  text: 'play.txt',
  lines: 'chats.jsonl',
  model: 'models/tiny',
  tokenizer: 'words/tokenizer.json',
  nothing: 'nothing',
};

export class Values {
  private readonly document: { components: { schemas: Record<string, Schema> } };

  constructor(document: { components: { schemas: Record<string, Schema> } }) {
    this.document = document;
  }

  forSchema(given: Schema, depth = 0): Arbitrary<unknown> {
    const schema = this.flat(given);
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum) return fc.constantFrom(...schema.enum);
    const choices = schema.oneOf ?? schema.anyOf;
    // Alternatives of one object often only state which of its fields belong together.
    if (choices && schema.properties === undefined)
      return fc.oneof(...choices.map((each) => this.forSchema(each, depth)));
    const types = Array.isArray(schema.type)
      ? schema.type
      : [schema.type ?? (schema.properties ? 'object' : 'any')];
    return fc.oneof(...types.map((type) => this.ofType(type, schema, depth)));
  }

  private ofType(type: string, schema: Schema, depth: number): Arbitrary<unknown> {
    switch (type) {
      case 'null':
        return fc.constant(null);
      case 'boolean':
        return fc.boolean();
      case 'integer':
        return numbers(schema, (min, max) => fc.integer({ min, max }));
      case 'number':
        return numbers(schema, (min, max) => fc.double({ min, max, noNaN: true }));
      case 'string':
        return strings(schema);
      case 'array':
        return this.array(schema, depth);
      case 'object':
        return this.object(schema, depth);
      default:
        return fc.jsonValue({ maxDepth: 2 });
    }
  }

  private array({ items = {}, minItems = 0, maxItems = MAX_ITEMS, uniqueItems }: Schema, depth: number) {
    const limits = { minLength: minItems, maxLength: Math.max(minItems, Math.min(maxItems, MAX_ITEMS)) };
    const element = this.forSchema(items, depth + 1);
    if (depth > DEEPEST) return fc.constant([]);
    if (!uniqueItems) return fc.array(element, limits);
    return fc.uniqueArray(element, { ...limits, selector: (value) => JSON.stringify(value) });
  }

  private object(schema: Schema, depth: number): Arbitrary<unknown> {
    // Alternatives of one object state which of its fields exclude each other. Sometimes all of them are given.
    const alternatives = schema.oneOf ?? [];
    if (alternatives.length > 0 && alternatives.every((each) => each.required)) {
      const { oneOf: _, ...whole } = schema;
      const only = alternatives.map((chosen) => this.object(withOnly(whole, chosen, alternatives), depth));
      return fc.oneof(...only, this.object(whole, depth));
    }
    const { properties = {}, required = [], additionalProperties } = schema;
    const known = Object.entries(properties).filter(([name]) => depth < DEEPEST || required.includes(name));
    const fields = fc.record(
      Object.fromEntries(known.map(([name, each]) => [name, this.forSchema(each, depth + 1)])),
      {
        requiredKeys: required.filter((name) => name in properties),
      },
    );
    if (typeof additionalProperties !== 'object') return fields;
    const more = fc.dictionary(fc.string({ maxLength: 8 }), this.forSchema(additionalProperties, depth + 1), {
      maxKeys: 3,
    });
    return fc.tuple(more, fields).map(([first, second]) => ({ ...first, ...second }));
  }

  /** Resolves references and merges `allOf` and `then`. */
  private flat(schema: Schema): Schema {
    if (schema.$ref !== undefined) {
      const target = this.document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {};
      return this.flat(target);
    }
    const { allOf, then, ...rest } = schema;
    const own = { ...then, ...rest };
    if (allOf === undefined) return own;
    const merged: Schema = { required: [] };
    for (const each of [...allOf.map((part) => this.flat(part)), own]) {
      const required = [...(merged.required ?? []), ...(each.required ?? [])];
      const properties = { ...merged.properties, ...each.properties };
      Object.assign(merged, each, { required }, Object.keys(properties).length > 0 && { properties });
    }
    return merged;
  }
}

/** The object with the fields of one alternative and none of the others'. */
function withOnly(whole: Schema, { required = [] }: Schema, all: Schema[]): Schema {
  const excluded = all.flatMap((each) => each.required ?? []).filter((name) => !required.includes(name));
  const kept = Object.entries(whole.properties ?? {}).filter(([name]) => !excluded.includes(name));
  return {
    ...whole,
    properties: Object.fromEntries(kept),
    required: [...(whole.required ?? []), ...required],
  };
}

function numbers(
  { minimum, maximum, exclusiveMinimum, exclusiveMaximum, type }: Schema,
  between: (min: number, max: number) => Arbitrary<number>,
): Arbitrary<number> {
  const min = Math.max(minimum ?? exclusiveMinimum ?? -1e6, -(2 ** 53) + 1);
  const max = Math.min(maximum ?? exclusiveMaximum ?? 1e6, 2 ** 53 - 1);
  // Includes values between two fp32 numbers.
  const fine = type === 'integer' ? [] : [min + Number.MIN_VALUE, max - max * Number.EPSILON];
  const edges = fc.constantFrom(min, max, min + 1, max - 1, ...fine);
  // Documents with small numbers satisfy the rules between fields more often.
  const small = between(Math.ceil(min), Math.ceil(Math.min(max, min + 20)));
  return fc.oneof(
    { weight: 4, arbitrary: small },
    { weight: 2, arbitrary: edges },
    between(Math.ceil(min), max),
  );
}

function strings({ pattern, minLength = 0, maxLength = 40 }: Schema): Arbitrary<string> {
  const kind = pattern === undefined ? undefined : ID_PATTERN.exec(pattern)?.[1];
  if (kind !== undefined) {
    const known = fc.nat({ max: 99 }).map((n) => idToken(kind, n));
    return fc.oneof({ weight: 5, arbitrary: known }, fc.stringMatching(new RegExp(pattern ?? '')));
  }
  if (pattern?.includes(S3)) {
    const known = Object.values(OPEN_KEYS).map((key) => `${S3}${OPEN_BUCKET}/${key}`);
    const other = fc.stringMatching(new RegExp(pattern)).map((text) => text.slice(0, maxLength));
    const ids = ['mdl', 'ckpt'].filter((each) => pattern.includes(`${each}_`));
    const tokens = ids.map((each) => fc.nat({ max: 99 }).map((n) => idToken(each, n)));
    return fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...known, `${S3}shut/a`) }, other, ...tokens);
  }
  const lengths = { minLength, maxLength: Math.max(minLength, Math.min(maxLength, 200)) };
  if (pattern !== undefined)
    return fc.stringMatching(new RegExp(pattern)).map((text) => text.slice(0, maxLength));
  return fc.oneof(fc.string(lengths), fc.string({ ...lengths, unit: 'binary' }));
}

const DEEP = (() => {
  let value: unknown = 1;
  for (let i = 0; i < 500; i += 1) value = [value];
  return value;
})();

/** Values that are invalid for nearly any field. */
export const JUNK: Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, -1, 0, -0, 1.5, 1e308, 2 ** 53, '', ' ', '\u0000', '../..', [], {}),
  fc.constantFrom<unknown>(
    'x'.repeat(5000),
    '__proto__',
    { __proto__: null, constructor: {} },
    '\ud800',
    DEEP,
  ),
  fc.jsonValue({ maxDepth: 3 }),
);

interface Mutation {
  how: 'replace' | 'remove' | 'add';
  /** Selects the position. */
  at: number;
  junk: unknown;
  name: string;
}

export const MUTATIONS: Arbitrary<Mutation> = fc.record({
  how: fc.constantFrom('replace', 'remove', 'add'),
  at: fc.nat({ max: 10_000 }),
  junk: JUNK,
  name: fc.oneof(fc.constantFrom('__proto__', 'constructor', 'toString', ''), fc.string({ maxLength: 12 })),
});

/** A copy of a document with one mutation. */
export function mutated(value: unknown, { how, at, junk, name }: Mutation): unknown {
  const slots: { parent: Record<string, unknown>; key: string }[] = [];
  const root = { value: structuredClone(value) };
  const walk = (parent: Record<string, unknown>) => {
    for (const key of Object.keys(parent)) {
      slots.push({ parent, key });
      const child = parent[key];
      if (typeof child === 'object' && child !== null) walk(child as Record<string, unknown>);
    }
  };
  walk(root);
  const slot = slots[at % slots.length];
  if (slot === undefined) return junk;
  const { parent, key } = slot;
  const target = parent[key];
  if (how === 'remove' && parent !== root) delete parent[key];
  else if (how === 'add' && Array.isArray(target)) target.push(junk);
  else if (how === 'add' && typeof target === 'object' && target !== null)
    Object.defineProperty(target, name, {
      value: junk,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  else parent[key] = junk;
  return root.value;
}
