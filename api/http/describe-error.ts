import type { FastifyError } from 'fastify';
import { ERROR_CATALOGUE, type ErrorCode, ZerofleetError } from '../../contracts/index.js';
import { toFieldErrors } from './field-errors.js';
import { fieldSummary, type ProblemSource } from './problem.js';
import { isValidationError, type ValidationError } from './validators.js';

/** Catalogue codes of Fastify's own errors. Others of status 4xx become `bad_request`. */
const CODE_OF_FASTIFY_ERROR: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_JSON_BODY: 'malformed_json',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'body_required',
};

/** JSON pointers of the parts that Fastify validates. */
const POINTER_OF_CONTEXT: Readonly<Record<string, string>> = {
  body: '',
  querystring: '/query',
  params: '/path',
  headers: '/header',
};

/** Returns the catalogue's description of any error. */
export function describeError(error: unknown): ProblemSource {
  if (isValidationError(error)) return describeValidation(error);
  if (error instanceof ZerofleetError) {
    const { code, message, fields } = error;
    return { code, detail: message, errors: fields };
  }
  const { code, statusCode = 500, message } = error as Partial<FastifyError>;
  const known = CODE_OF_FASTIFY_ERROR[code ?? ''];
  if (known !== undefined)
    return { code: known, detail: message ?? ERROR_CATALOGUE[known].title, errors: [] };
  if (statusCode >= 400 && statusCode < 500)
    return { code: 'bad_request', detail: message ?? '', errors: [] };
  return { code: 'internal_error', detail: '', errors: [] };
}

function describeValidation(error: ValidationError): ProblemSource {
  const prefix = POINTER_OF_CONTEXT[error.validationContext] ?? '';
  const errors = toFieldErrors(error.validation, prefix);
  const code = prefix === '' ? 'validation_failed' : 'invalid_parameter';
  return { code, detail: fieldSummary(errors), errors };
}
