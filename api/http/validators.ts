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
  readonly #parameters = withFormats(new Ajv2020({ ...OPTIONS, coerceTypes: true, useDefaults: true }));

  compile(schema: object, part: HttpPart): ValidateFunction {
    if (part === 'body') return this.#body.compile(schema);
    // A misspelled query parameter would otherwise be ignored in silence.
    return this.#parameters.compile(
      part === 'querystring' ? { ...schema, additionalProperties: false } : schema,
    );
  }
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
