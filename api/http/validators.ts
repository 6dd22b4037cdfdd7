import { Ajv2020, type ErrorObject, type Options, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

/** The parts of a request that Fastify validates. */
export type HttpPart = 'body' | 'querystring' | 'params' | 'headers';

const OPTIONS: Options = {
  // Every bad field at once; the size of a body bounds the work.
  allErrors: true,
  // An error's parent schema is what suggestions are made from.
  verbose: true,
  strictTypes: false,
};

/** JSON Schema 2020-12, as OpenAPI 3.1 has it. Bodies are taken as they are; parameters are text and are converted. */
export class RequestValidators {
  readonly #body = withFormats(new Ajv2020(OPTIONS));
  readonly #parameters = withFormats(new Ajv2020({ ...OPTIONS, coerceTypes: 'array', useDefaults: true }));

  compile(schema: object, part: HttpPart): ValidateFunction {
    switch (part) {
      case 'body':
        return this.#body.compile(schema);
      case 'headers':
        return this.#parameters.compile(withLowerCaseNames(schema));
      case 'querystring':
        // A misspelled query parameter would otherwise be ignored in silence.
        return this.#parameters.compile({ ...schema, additionalProperties: false });
      case 'params':
        return this.#parameters.compile(schema);
    }
  }
}

/** A validator of one of the schemas of an OpenAPI document. */
export function compileComponent(document: object, name: string): ValidateFunction {
  // That the document is valid is checked where it is written.
  const ajv = withFormats(new Ajv2020({ ...OPTIONS, strict: false, validateSchema: false }));
  return ajv.addSchema(document, 'openapi').compile({ $ref: `openapi#/components/schemas/${name}` });
}

/** Node has the names of headers in lower case; Fastify leaves the schema to whoever brings a validator of their own. */
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

/** The error that Fastify makes from a validator's errors. */
export interface ValidationError extends Error {
  validation: ErrorObject[];
  /** The part of the request: `body`, `querystring`, `params` or `headers`. */
  validationContext: string;
}

export function isValidationError(error: unknown): error is ValidationError {
  return error instanceof Error && Array.isArray((error as { validation?: unknown }).validation);
}

function withFormats(ajv: Ajv2020): Ajv2020 {
  formats.default(ajv);
  return ajv;
}
