/**
 * Schemas of documents and messages with the API and types of TypeBox, and validation of values.
 *
 * TypeBox itself and Ajv are 300 modules, most of what a rank would load before it can start. The few builder
 * methods in use create plain JSON Schema, so TypeBox's types suffice; Ajv is loaded with the first
 * validation.
 */
import { createRequire } from 'node:module';
import type { JavaScriptTypeBuilder, Static, TSchema } from '@sinclair/typebox';
import type { Ajv, ValidateFunction } from 'ajv';

export type { Static, TSchema } from '@sinclair/typebox';

type Schema = Record<string | symbol, unknown>;
type Words =
  | 'Array'
  | 'Boolean'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
  | 'Unsafe';

/** Marks an optional property; a symbol is not part of the JSON. */
const OPTIONAL = Symbol('optional');

const words: Record<Words, (...args: never[]) => Schema> = {
  Array: (items: Schema, options?: Schema) => ({ type: 'array', items, ...options }),
  Boolean: (options?: Schema) => ({ type: 'boolean', ...options }),
  Integer: (options?: Schema) => ({ type: 'integer', ...options }),
  Literal: (value: string | number | boolean) => ({ const: value }),
  Null: () => ({ type: 'null' }),
  Number: (options?: Schema) => ({ type: 'number', ...options }),
  Object: (properties: Record<string, Schema>, options?: Schema) => {
    const required = Object.keys(properties).filter((name) => properties[name]?.[OPTIONAL] !== true);
    return { type: 'object', properties, required, ...options };
  },
  Optional: (schema: Schema) => ({ ...schema, [OPTIONAL]: true }),
  Record: (_names: Schema, values: Schema) => ({ type: 'object', additionalProperties: values }),
  String: (options?: Schema) => ({ type: 'string', ...options }),
  Union: (schemas: Schema[], options?: Schema) => ({ anyOf: schemas, ...options }),
  Unsafe: (schema?: Schema) => ({ ...schema }),
};

/** Subset of TypeBox's builder. Each method creates the JSON Schema of its TypeBox type. */
export const Type = words as unknown as Pick<JavaScriptTypeBuilder, Words>;

const require = createRequire(import.meta.url);

function newAjv({ every = false, defaults = false }: CheckOptions): Ajv {
  const { Ajv: Class } = require('ajv') as typeof import('ajv');
  return new Class({ allErrors: every, useDefaults: defaults });
}

interface CheckOptions {
  /** True to find every problem. Only for trusted values, because each problem has a cost. */
  every?: boolean;
  /** True to write the schema's defaults into the value. */
  defaults?: boolean;
}

/** Validator of a schema, which is compiled for the first value. */
export class Check<T extends TSchema> {
  private compiled: ValidateFunction<Static<T>> | undefined;

  constructor(
    private readonly schema: T,
    private readonly options: CheckOptions = {},
  ) {}

  /** Compiles the schema, which takes some 30 ms. Without this call the first value waits for it. */
  compile(): ValidateFunction<Static<T>> {
    this.compiled ??= newAjv(this.options).compile<Static<T>>(this.schema);
    return this.compiled;
  }

  fits(value: unknown): value is Static<T> {
    return this.compile()(value);
  }

  /** Returns the first problem of the last value, or every one: `/params/0/shape must be array`. */
  problems(): string[] {
    return (this.compiled?.errors ?? []).map(({ instancePath, keyword, params, message }) =>
      keyword === 'additionalProperties'
        ? `${instancePath}/${String(params.additionalProperty).slice(0, 100)} is unknown`
        : `${instancePath || '/'} ${message ?? 'is wrong'}`,
    );
  }
}
