import type { FastifyRequest } from 'fastify';
import type { FieldError } from '../../contracts/index.js';
import { toFieldErrors } from './field-errors.js';
import { isValidationError } from './validators.js';

/** Schema errors of the body. Schema errors of other parts are thrown, because they do not concern the document. */
export function bodyErrors({ validationError }: Pick<FastifyRequest, 'validationError'>): FieldError[] {
  if (validationError === undefined) return [];
  if (!isValidationError(validationError) || validationError.validationContext !== 'body')
    throw validationError;
  return toFieldErrors(validationError.validation);
}
