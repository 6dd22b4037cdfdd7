import type { FastifyRequest } from 'fastify';
import type { FieldError } from '../../contracts/index.js';
import { toFieldErrors } from './field-errors.js';
import { isValidationError } from './validators.js';

/** What the schema found in the body. Errors elsewhere are thrown: they are not about the document. */
export function bodyErrors({ validationError }: Pick<FastifyRequest, 'validationError'>): FieldError[] {
  if (validationError === undefined) return [];
  if (!isValidationError(validationError) || validationError.validationContext !== 'body')
    throw validationError;
  return toFieldErrors(validationError.validation);
}
