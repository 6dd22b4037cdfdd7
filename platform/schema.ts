/**
 * Schemas of documents and messages in TypeBox's words and types, and the check that a value fits one.
 *
 * TypeBox itself and Ajv are 300 modules, the larger part of what a rank would load before it can do anything. The few words of TypeBox
 * that are used make plain JSON Schema, so its types are enough; and Ajv is loaded with the first value that is checked.
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

/** Of a property that may be absent; a symbol is no part of the JSON. */
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
  Union: (schemas: Schema[]) => ({ anyOf: schemas }),
  Unsafe: (schema?: Schema) => ({ ...schema }),
};

/** TypeBox's builder, as far as it is used here. Each word makes the JSON Schema that its type there says. */
export const Type = words as unknown as Pick<JavaScriptTypeBuilder, Words>;

const require = createRequire(import.meta.url);

function newAjv({ every = false, defaults = false }: CheckOptions): Ajv {
  const { Ajv: Class } = require('ajv') as typeof import('ajv');
  return new Class({ allErrors: every, useDefaults: defaults });
}

export interface CheckOptions {
  /** Find every place that is wrong: only for values that nobody from elsewhere can send, for each place costs something. */
  every?: boolean;
  /** Put the schema's defaults into the value. */
  defaults?: boolean;
}

/** Whether values fit a schema, which is compiled for the first of them. */
export class Check<T extends TSchema> {
  private compiled: ValidateFunction<Static<T>> | undefined;

  constructor(
    private readonly schema: T,
    private readonly options: CheckOptions = {},
  ) {}

  fits(value: unknown): value is Static<T> {
    this.compiled ??= newAjv(this.options).compile<Static<T>>(this.schema);
    return this.compiled(value);
  }

  /** A place of the last value that did not fit (or every one) and what is wrong there: `/params/0/shape must be array`. */
  problems(): string[] {
    return (this.compiled?.errors ?? []).map(({ instancePath, keyword, params, message }) =>
      keyword === 'additionalProperties'
        ? `${instancePath}/${String(params.additionalProperty).slice(0, 100)} is unknown`
        : `${instancePath || '/'} ${message ?? 'is wrong'}`,
    );
  }
}
