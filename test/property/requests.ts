/** Generates requests from the operations of the contract: paths, queries, headers and bodies, valid and invalid. */
import fc, { type Arbitrary } from 'fast-check';
import { JUNK, MUTATIONS, mutated, type Schema, Values } from './values.js';

interface Parameter {
  $ref?: string;
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  schema: Schema;
}

interface MediaType {
  schema?: Schema;
  examples?: Record<string, { value: unknown }>;
}

interface OperationDocument {
  operationId: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, MediaType> };
}

export interface ApiDocument {
  paths: Record<string, Record<string, unknown>>;
  components: { schemas: Record<string, Schema>; parameters: Record<string, Parameter> };
}

/** A generated request; ids are still tokens. */
export interface GeneratedRequest {
  operationId: string;
  method: string;
  /** Includes the query. */
  url: string;
  headers: Record<string, string>;
  body: string | Buffer | undefined;
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/** One generator per operation. */
export function requestsOf(document: ApiDocument): Map<string, Arbitrary<GeneratedRequest>> {
  const maker = new Maker(document);
  const found = new Map<string, Arbitrary<GeneratedRequest>>();
  for (const [path, item] of Object.entries(document.paths)) {
    const shared = (item.parameters ?? []) as Parameter[];
    for (const method of METHODS.filter((name) => name in item)) {
      const operation = item[method] as OperationDocument;
      found.set(operation.operationId, maker.requests(path, method, shared, operation));
    }
  }
  return found;
}

class Maker {
  private readonly values: Values;

  constructor(private readonly document: ApiDocument) {
    this.values = new Values(document);
  }

  requests(
    path: string,
    method: string,
    shared: Parameter[],
    operation: OperationDocument,
  ): Arbitrary<GeneratedRequest> {
    const parameters = [...shared, ...(operation.parameters ?? [])].map((each) => this.parameter(each));
    const { operationId } = operation;
    return fc
      .record({
        path: this.path(
          path,
          parameters.filter((each) => each.in === 'path'),
        ),
        query: this.query(parameters.filter((each) => each.in === 'query')),
        headers: this.headers(parameters.filter((each) => each.in === 'header')),
        content: this.content(operation),
      })
      .map(({ path: at, query, headers, content }) => ({
        operationId,
        method: method.toUpperCase(),
        url: query === '' ? at : `${at}?${query}`,
        headers: { ...headers, ...content.headers },
        body: content.body,
      }));
  }

  private parameter(given: Parameter): Parameter {
    const name = given.$ref?.split('/').at(-1);
    return name === undefined ? given : (this.document.components.parameters[name] ?? given);
  }

  private path(template: string, parameters: Parameter[]): Arbitrary<string> {
    const bad = fc.oneof(
      fc.constantFrom('..%2f..%2fetc', '%00', '%zz', 'a'.repeat(64), 'a'.repeat(3000), '%E0%A4%A', '.', '@'),
      fc.string({ maxLength: 20 }).map(encodeURIComponent),
    );
    const parts = parameters.map(({ schema }) =>
      fc.oneof({ weight: 9, arbitrary: this.values.forSchema(schema).map(String) }, bad),
    );
    return fc
      .tuple(...parts)
      .map((texts) =>
        parameters.reduce((at, { name }, i) => at.replace(`{${name}}`, () => texts[i] ?? ''), template),
      );
  }

  private query(parameters: Parameter[]): Arbitrary<string> {
    const each = parameters.map(({ name, schema, required }) => {
      const good = this.values
        .forSchema(schema)
        .map((value) => `${name}=${encodeURIComponent(asText(value))}`);
      const bad = fc.oneof(
        JUNK.map((value) => `${name}=${encodeURIComponent(asText(value))}`),
        fc.constantFrom(
          `${name}`,
          `${name}=1&${name}=2`,
          `${name}[]=1`,
          `${name}=%zz`,
          `${name}[__proto__]=1`,
        ),
      );
      const absent = { weight: required ? 1 : 6, arbitrary: fc.constant('') };
      return fc.oneof(absent, { weight: required ? 12 : 4, arbitrary: good }, bad);
    });
    const unknown = fc.oneof(
      { weight: 20, arbitrary: fc.constant('') },
      fc.constantFrom('x=1', '__proto__=1', '&&=&'),
    );
    return fc.tuple(...each, unknown).map((texts) => texts.filter((text) => text !== '').join('&'));
  }

  private headers(parameters: Parameter[]): Arbitrary<Record<string, string>> {
    const each = parameters.map(({ name, schema }) => {
      const good = this.values.forSchema(schema).map(asHeader);
      const text = fc.oneof(
        { weight: 4, arbitrary: good },
        JUNK.map((value) => asHeader(asText(value))),
      );
      const present = text.map((value): Record<string, string> => ({ [name]: value }));
      return fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, present);
    });
    return fc.tuple(...each).map((all) => Object.assign({}, ...all));
  }

  private content({
    requestBody,
  }: OperationDocument): Arbitrary<{ headers: Record<string, string>; body: string | undefined }> {
    const media = Object.entries(requestBody?.content ?? {});
    const none = fc.constant({ headers: {}, body: undefined });
    const surprise = fc
      .tuple(fc.constantFrom('application/json', 'text/plain', 'application/xml', 'x', 'a/b;c'), fc.string())
      .map(([type, body]) => ({ headers: { 'content-type': type }, body }));
    if (media.length === 0) return fc.oneof({ weight: 15, arbitrary: none }, surprise);
    const each = media.map(([type, { schema, examples = {} }]) => {
      const bodies = type === 'application/json' && schema ? this.json(schema, Object.values(examples)) : RAW;
      return bodies.map((body) => ({ headers: { 'content-type': type }, body }));
    });
    return fc.oneof({ weight: 12, arbitrary: fc.oneof(...each) }, none, surprise);
  }

  private json(schema: Schema, examples: { value: unknown }[]): Arbitrary<string> {
    const made = this.values.forSchema(schema);
    // Examples also satisfy the rules between fields, which few random documents do.
    const shown = examples.map(({ value }) => fc.constant(withTokens(value)));
    const mixed = fc.tuple(fc.oneof(...shown, fc.constant({})), made, fc.nat()).map(([base, other, n]) => {
      const [name, value] = Object.entries(Object(other)).at(n % 7) ?? ['', undefined];
      return name === '' ? base : { ...Object(base), [name]: value };
    });
    const good = fc.oneof(made, ...shown, { weight: 2, arbitrary: mixed });
    const bad = fc.tuple(good, MUTATIONS).map(([value, mutation]) => mutated(value, mutation));
    const text = fc
      .oneof({ weight: 3, arbitrary: good }, { weight: 2, arbitrary: bad })
      .map((value) => JSON.stringify(value));
    const broken = fc.oneof(
      fc.string(),
      fc.constantFrom(
        '{',
        '{"a":1,}',
        '[[[[',
        '{"__proto__":{"x":1}}',
        '"',
        '\u0000',
        '{"a":1}{"b":2}',
        'NaN',
      ),
      fc.constantFrom(
        '['.repeat(50_000),
        `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
        '{"a":'.repeat(20_000),
      ),
    );
    return fc.oneof({ weight: 12, arbitrary: text.map((value) => value ?? 'null') }, broken);
  }
}

/** Contents of uploads. */
const RAW = fc.oneof(
  fc.string({ minLength: 1, maxLength: 300 }),
  fc
    .array(fc.record({ text: fc.string({ minLength: 1 }) }), { minLength: 1 })
    .map((lines) => lines.map((line) => JSON.stringify(line)).join('\n')),
  fc.constantFrom('', '\n', '{"text":1}', '{"messages":[]}', '\u0000'.repeat(1024)),
);

const withTokens = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replaceAll(/\b(ds|mdl|ckpt|job|wh)_[0-9A-HJKMNP-TV-Z]{26}/g, '@@$1@@0'));

const asText = (value: unknown): string =>
  typeof value === 'string' ? toWellFormed(value) : (JSON.stringify(value) ?? '');

/** Removes characters that Node refuses in a header. */
const asHeader = (value: unknown): string =>
  asText(value)
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .slice(0, 4000);

/** Removes unpaired surrogates, which no URL can contain. */
const toWellFormed = (text: string): string => Buffer.from(text, 'utf8').toString('utf8');
