import { Ajv2020, type ErrorObject, type Options, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

/** The parts of a request that Fastify validates. */
export type HttpPart = 'body' | 'querystring' | 'params' | 'headers';

const OPTIONS: Options = {
  // All errors are collected; the body size bounds the work.
  allErrors: true,
  // Suggestions are derived from an error's parent schema.
  verbose: true,
  strictTypes: false,
};

/**
 * JSON Schema 2020-12, as in OpenAPI 3.1. Bodies are validated without coercion; parameters are text and are converted.
 * A schema that was compiled before is not compiled again.
 */
export class RequestValidators {
  private readonly compiled: Readonly<Record<HttpPart, WeakMap<object, ValidateFunction>>> = {
    body: new WeakMap(),
    querystring: new WeakMap(),
    params: new WeakMap(),
    headers: new WeakMap(),
  };
  private readonly body = withFormats(new Ajv2020(OPTIONS));
  private readonly parameters = withFormats(
    new Ajv2020({ ...OPTIONS, coerceTypes: 'array', useDefaults: true }),
  );

  compile(schema: object, part: HttpPart): ValidateFunction {
    const compiled = this.compiled[part].get(schema) ?? this.build(schema, part);
    this.compiled[part].set(schema, compiled);
    return compiled;
  }

  private build(schema: object, part: HttpPart): ValidateFunction {
    switch (part) {
      case 'body':
        return this.body.compile(schema);
      case 'headers':
        return this.parameters.compile(withLowerCaseNames(schema));
      case 'querystring':
        // A misspelled query parameter would otherwise be ignored silently.
        return this.parameters.compile({ ...schema, additionalProperties: false });
      case 'params':
        return this.parameters.compile(schema);
    }
  }
}

/** Validator of one schema of an OpenAPI document. @param options replace those of request bodies */
export function compileComponent(document: object, name: string, options: Options = {}): ValidateFunction {
  // `npm run lint` validates the document itself.
  const ajv = withFormats(new Ajv2020({ ...OPTIONS, strict: false, validateSchema: false, ...options }));
  return ajv.addSchema(document, 'openapi').compile({ $ref: `openapi#/components/schemas/${name}` });
}

/**
 * Lower-cases header names in a schema: Node reports them in lower case, and Fastify does not convert them for a custom
 * validator.
 */
function withLowerCaseNames(schema: { properties?: object; required?: string[] }): object {
  const properties = Object.entries(schema.properties ?? {}).map(([name, value]) => [
    name.toLowerCase(),
    value,
  ]);
  return {
    ...schema,
    properties: Object.fromEntries(properties),
    required: (schema.required ?? []).map((name) => name.toLowerCase()),
  };
}

/** Error that Fastify creates from a validator's errors. */
export interface ValidationError extends Error {
  validation: ErrorObject[];
  /** Part of the request: `body`, `querystring`, `params` or `headers`. */
  validationContext: string;
}

export function isValidationError(error: unknown): error is ValidationError {
  return error instanceof Error && Array.isArray((error as { validation?: unknown }).validation);
}

function withFormats(ajv: Ajv2020): Ajv2020 {
  formats.default(ajv);
  return ajv;
}
