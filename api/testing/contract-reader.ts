import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { webhooks } from '../../contracts/generated/openapi.js';
import type { OperationId } from '../../contracts/index.js';
import type { Contract } from '../operations.js';

/** A schema of the contract, or a part of one. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  allOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema | false;
  default?: unknown;
  enum?: unknown[];
  examples?: unknown[];
}

interface Example {
  $ref?: string;
  value?: unknown;
}

interface MediaType {
  schema?: Schema;
  examples?: Record<string, Example>;
}

interface Header {
  $ref?: string;
  required?: boolean;
  schema?: Schema;
}

/** A request body or an answer. */
export interface Message {
  $ref?: string;
  headers?: Record<string, Header>;
  content?: Record<string, MediaType>;
}

/** An operation with every `$ref` of its body and its answers resolved. */
interface OperationReader {
  id: OperationId;
  path: string;
  method: string;
  body?: Message;
  answers: [status: string, Message][];
}

interface WebhookObject {
  parameters: { name: string; schema: Schema }[];
  requestBody: { content: Record<string, MediaType> };
}

interface OperationObject {
  operationId: OperationId;
  requestBody?: Message;
  responses: Record<string, Message>;
}

const DOCUMENT_ID = 'openapi';

/** Reads parts of the contract that only tests use, and checks values against its schemas. */
export class ContractReader {
  private readonly document: object;
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true });
  private readonly validators = new Map<string, ValidateFunction>();
  readonly operations: OperationReader[];
  /** Webhook messages, by name. */
  readonly webhooks: Readonly<Record<keyof webhooks, { post: WebhookObject }>>;

  constructor({ document }: Contract) {
    this.document = document;
    formats.default(this.ajv);
    this.ajv.addSchema(document, DOCUMENT_ID);
    this.webhooks = (document as unknown as Pick<ContractReader, 'webhooks'>).webhooks;
    this.operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).flatMap(([method, part]) =>
        isOperation(part) ? [this.read(part, path, method)] : [],
      ),
    );
  }

  /** Schema errors of a value; null for none. */
  problems(schema: Schema, value: unknown): string | null {
    const text = JSON.stringify(schema);
    let validate = this.validators.get(text);
    if (validate === undefined) {
      validate = this.ajv.compile(JSON.parse(text.replaceAll('"#/', `"${DOCUMENT_ID}#/`)));
      this.validators.set(text, validate);
    }
    return validate(value) ? null : this.ajv.errorsText(validate.errors);
  }

  /** Resolves a `$ref`; returns anything else unchanged. */
  resolve<T extends { $ref?: string }>(node: T): T {
    let found = node;
    while (found.$ref !== undefined) {
      const names = found.$ref.slice('#/'.length).split('/');
      found = names.reduce(
        (part: unknown, name) => (part as Record<string, unknown>)[name],
        this.document,
      ) as T;
    }
    return found;
  }

  /** Fields of an object and the required ones, including those of all its `allOf`. */
  fields(schema: Schema): { properties: Record<string, Schema>; required: Set<string> } {
    const { properties = {}, required = [], allOf = [] } = this.resolve(schema);
    const inherited = allOf.map((part) => this.fields(part));
    return {
      properties: Object.assign({}, ...inherited.map((part) => part.properties), properties),
      required: new Set([...inherited.flatMap((part) => [...part.required]), ...required]),
    };
  }

  /**
   * Examples of a media type: its own, else those of the schema, else one combined from the examples of its parts, as
   * tools do. None if a part has no example.
   */
  examplesOf({ examples, schema = {} }: MediaType): unknown[] {
    if (examples) return Object.values(examples).map(({ value }) => value);
    const found = this.resolve(schema);
    if (found.examples) return found.examples;
    const made = this.compose(found);
    return made === undefined ? [] : [made];
  }

  private compose(schema: Schema): unknown {
    const { examples, enum: values, default: preset, type, items, oneOf } = schema;
    if (examples) return examples[0];
    if (schema.$ref !== undefined) return this.compose(this.resolve(schema));
    if (preset !== undefined) return preset;
    if (values) return values[0];
    if (type === 'null') return null;
    if (oneOf) return oneOf.map((part) => this.compose(part)).find((value) => value !== undefined);
    if (type === 'array' && items) {
      const item = this.compose(items);
      return item === undefined ? undefined : [item];
    }
    if (schema.properties === undefined && schema.allOf === undefined) return undefined;
    const { properties, required } = this.fields(schema);
    const made = Object.fromEntries(
      [...required].map((name) => [name, this.compose(properties[name] ?? {})]),
    );
    return Object.values(made).includes(undefined) ? undefined : made;
  }

  /** A schema and all schemas inside it, each once. */
  *within(schema: Schema, seen = new Set<Schema>()): Generator<Schema> {
    const found = this.resolve(schema);
    if (seen.has(found)) return;
    seen.add(found);
    yield found;
    const { properties } = this.fields(found);
    const parts = [
      ...Object.values(properties),
      ...(found.oneOf ?? []),
      ...(found.items ? [found.items] : []),
    ];
    for (const part of parts) yield* this.within(part, seen);
  }

  private read(
    { operationId, requestBody, responses }: OperationObject,
    path: string,
    method: string,
  ): OperationReader {
    return {
      id: operationId,
      path,
      method: method.toUpperCase(),
      ...(requestBody && { body: this.resolve(requestBody) }),
      answers: Object.entries(responses).map(([status, answer]) => [status, this.resolve(answer)]),
    };
  }
}

function isOperation(part: unknown): part is OperationObject {
  return typeof part === 'object' && part !== null && 'responses' in part;
}
