/** JSON Schemas of answers, as far as a grammar can guarantee them. */
import { concrete, haveFiniteValues, type SchemaNode } from './schema-nodes.js';

/** A schema that cannot be guaranteed. */
export class SchemaFault extends Error {
  /** @param pointer the location in the schema, as a JSON pointer */
  constructor(
    readonly pointer: string,
    readonly code: 'bad_format' | 'out_of_range' | 'unknown_field',
    message: string,
  ) {
    super(message);
  }
}

const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'] as const;
type TypeName = (typeof TYPES)[number];

/** Keywords without an effect on values. */
const ANNOTATIONS = [
  'title',
  'description',
  'default',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
  '$schema',
  '$comment',
  '$defs',
  'definitions',
];
const KEYWORDS_OF: Readonly<Record<TypeName, readonly string[]>> = {
  object: ['properties', 'required', 'additionalProperties'],
  array: ['items', 'minItems', 'maxItems'],
  string: ['minLength', 'maxLength'],
  number: [],
  integer: [],
  boolean: [],
  null: [],
};
/** Keywords that stand without other keywords, except `type` beside values. */
const ALONE = ['$ref', 'anyOf', 'enum', 'const'] as const;
const KEYWORDS = [...ANNOTATIONS, ...ALONE, 'type', ...Object.values(KEYWORDS_OF).flat()];

/** Largest length of a string or an array in a schema. */
const MAX_COUNT = 10_000;
/** Largest size of a schema: characters of its names and values, lengths of its strings and arrays. */
const MAX_SIZE = 50_000;
const NODE_SIZE = 8;
const MAX_DEPTH = 200;

type Schema = Readonly<Record<string, unknown>>;

/**
 * Reads a schema whose values are objects. The first node is that of the schema.
 * @throws SchemaFault for what a grammar cannot guarantee
 */
export function readSchema(schema: unknown): SchemaNode[] {
  const reader = new SchemaReader(schema);
  reader.read(schema, '');
  const { nodes } = reader;
  const roots = concrete(nodes, 0);
  if (!roots.every(({ kind }) => kind === 'object' || kind === 'map'))
    throw new SchemaFault('', 'bad_format', 'the schema of an answer must have the type object');
  if (haveFiniteValues(nodes).includes(false))
    throw new SchemaFault('', 'bad_format', 'no value satisfies a part of the schema that requires itself');
  return nodes;
}

class SchemaReader {
  readonly nodes: SchemaNode[] = [];
  private readonly known = new Map<unknown, number>();
  private size = 0;
  private depth = 0;

  constructor(private readonly root: unknown) {}

  read(schema: unknown, at: string): number {
    const known = this.known.get(schema);
    if (known !== undefined && typeof schema === 'object') return known;
    const index = this.nodes.push({ kind: 'any' }) - 1;
    this.grow(NODE_SIZE, at);
    if (schema === true) return index;
    if (!isSchema(schema))
      throw new SchemaFault(at, 'bad_format', 'must be a schema: an object, or true for any value');
    this.known.set(schema, index);
    if (this.depth >= MAX_DEPTH)
      throw new SchemaFault(at, 'out_of_range', `the schema nests deeper than ${MAX_DEPTH} levels`);
    this.depth += 1;
    this.nodes[index] = this.nodeOf(schema, at);
    this.depth -= 1;
    return index;
  }

  private nodeOf(schema: Schema, at: string): SchemaNode {
    const keywords = Object.keys(schema).filter((keyword) => !ANNOTATIONS.includes(keyword));
    for (const keyword of keywords) {
      if (!KEYWORDS.includes(keyword))
        throw new SchemaFault(
          below(at, keyword),
          'unknown_field',
          `the keyword ${keyword} is not supported; leave it out, or use: ${KEYWORDS.join(', ')}`,
        );
    }
    const alone = ALONE.find((keyword) => keyword in schema);
    if (alone === undefined) return this.typed(schema, keywords, at);
    const takesType = alone === 'enum' || alone === 'const';
    const other = keywords.find((keyword) => keyword !== alone && !(takesType && keyword === 'type'));
    if (other !== undefined)
      throw new SchemaFault(below(at, other), 'unknown_field', `${other} beside ${alone} is not supported`);
    if (alone === '$ref') return { kind: 'choice', options: [this.referred(schema.$ref, below(at, '$ref'))] };
    if (alone === 'anyOf') return this.choice(schema.anyOf, below(at, 'anyOf'));
    return this.literals(schema, alone, at);
  }

  private choice(schemas: unknown, at: string): SchemaNode {
    return { kind: 'choice', options: listOf(schemas, at).map((each, i) => this.read(each, below(at, i))) };
  }

  private referred(ref: unknown, at: string): number {
    const path = typeof ref === 'string' && /^#(\/|$)/.test(ref) ? ref.slice(1).split('/').slice(1) : null;
    let found: unknown = this.root;
    for (const part of path ?? []) {
      if (!isSchema(found)) break;
      const key = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~');
      found = Object.hasOwn(found, key) ? found[key] : undefined;
    }
    if (path === null || (found !== true && !isSchema(found)))
      throw new SchemaFault(at, 'bad_format', 'must name a part of this schema, such as #/$defs/name');
    return this.read(found, (path ?? []).map((part) => `/${part}`).join(''));
  }

  private literals(schema: Schema, keyword: 'enum' | 'const', at: string): SchemaNode {
    const pointer = below(at, keyword);
    const all = keyword === 'const' ? [schema.const] : listOf(schema.enum, pointer);
    const types = schema.type === undefined ? null : typesOf(schema.type, below(at, 'type'));
    const values = types === null ? all : all.filter((value) => types.some((type) => isOf(value, type)));
    if (values.length === 0) throw new SchemaFault(pointer, 'bad_format', 'has no value of the type');
    this.grow(
      values.reduce((sum: number, value) => sum + JSON.stringify(value).length, 0),
      at,
    );
    return { kind: 'literals', values };
  }

  private typed(schema: Schema, keywords: readonly string[], at: string): SchemaNode {
    if (schema.type === undefined) {
      const [keyword] = keywords;
      if (keyword === undefined) return { kind: 'any' };
      throw new SchemaFault(below(at, keyword), 'unknown_field', `${keyword} needs a type beside it`);
    }
    const types = typesOf(schema.type, below(at, 'type'));
    const taken = types.flatMap((type) => KEYWORDS_OF[type]);
    const other = keywords.find((keyword) => keyword !== 'type' && !taken.includes(keyword));
    if (other !== undefined)
      throw new SchemaFault(
        below(at, other),
        'unknown_field',
        `${other} is not a keyword of the type ${types.join(', ')}`,
      );
    const nodes = types.map((type) => this.ofType(type, schema, at));
    if (nodes.length === 1) return nodes[0] as SchemaNode;
    this.grow(NODE_SIZE * nodes.length, at);
    return { kind: 'choice', options: nodes.map((node) => this.nodes.push(node) - 1) };
  }

  private ofType(type: TypeName, schema: Schema, at: string): SchemaNode {
    if (type === 'boolean') return { kind: 'literals', values: [true, false] };
    if (type === 'null') return { kind: 'literals', values: [null] };
    if (type === 'object') return this.object(schema, at);
    if (type === 'string') return { kind: 'string', ...this.bounds(schema, 'Length', at) };
    if (type !== 'array') return { kind: type };
    const { items = true } = schema;
    return { kind: 'array', item: this.read(items, below(at, 'items')), ...this.bounds(schema, 'Items', at) };
  }

  private object(schema: Schema, at: string): SchemaNode {
    const { properties = {}, required = [], additionalProperties = true } = schema;
    if (!isSchema(properties))
      throw new SchemaFault(below(at, 'properties'), 'bad_format', 'must be an object');
    const names = Object.keys(properties);
    const needed = new Set(Array.isArray(required) ? (required as unknown[]) : [required]);
    const missing = [...needed].find((name) => typeof name !== 'string' || !Object.hasOwn(properties, name));
    if (missing !== undefined)
      throw new SchemaFault(
        below(at, 'required'),
        'bad_format',
        `${JSON.stringify(missing)} is not one of the properties`,
      );
    if (names.length === 0 && additionalProperties !== false)
      return { kind: 'map', value: this.read(additionalProperties, below(at, 'additionalProperties')) };
    if (typeof additionalProperties !== 'boolean')
      this.read(additionalProperties, below(at, 'additionalProperties'));
    this.grow(
      names.reduce((sum, name) => sum + JSON.stringify(name).length, 0),
      at,
    );
    return {
      kind: 'object',
      properties: names.map((name) => ({
        name,
        required: needed.has(name),
        value: this.read(properties[name], below(below(at, 'properties'), name)),
      })),
    };
  }

  private bounds(schema: Schema, what: 'Length' | 'Items', at: string): { min: number; max: number | null } {
    const count = (keyword: string) => {
      const value = schema[keyword];
      if (value === undefined) return null;
      if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_COUNT)
        return value as number;
      throw new SchemaFault(
        below(at, keyword),
        'out_of_range',
        `must be a whole number up to ${MAX_COUNT} (got ${JSON.stringify(value)})`,
      );
    };
    const [min, max] = [count(`min${what}`) ?? 0, count(`max${what}`)];
    if (max !== null && max < min)
      throw new SchemaFault(below(at, `max${what}`), 'out_of_range', `must be at least min${what}`);
    this.grow(max ?? min, at);
    return { min, max };
  }

  private grow(by: number, at: string): void {
    this.size += by;
    if (this.size > MAX_SIZE)
      throw new SchemaFault(
        at,
        'out_of_range',
        `the schema is too large: its parts, names, values and lengths together may count ${MAX_SIZE}`,
      );
  }
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function listOf(value: unknown, at: string): readonly unknown[] {
  if (Array.isArray(value) && value.length > 0) return value;
  throw new SchemaFault(at, 'bad_format', 'must be a list with at least one entry');
}

function typesOf(value: unknown, at: string): TypeName[] {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (names.length > 0 && names.every((name) => TYPES.includes(name as TypeName)))
    return [...new Set(names as TypeName[])];
  throw new SchemaFault(at, 'bad_format', `must be one of ${TYPES.join(', ')}, or a list of them`);
}

function isOf(value: unknown, type: TypeName): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isSchema(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

function below(at: string, key: string | number): string {
  return `${at}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
