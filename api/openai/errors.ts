/** Errors in the shape of the translated API: `{error: {message, type, param, code}}`. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ErrorCode, FieldError, Problem } from '../../contracts/index.js';
import { describeError } from '../http/describe-error.js';
import { CHALLENGE, RETRY_AFTER_SECONDS, toProblem } from '../http/problem.js';
import { leaveRestUnread } from '../http/upload-body.js';

/** A request that this API refuses itself. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    /** The parameter; null for the request as a whole. */
    readonly param: string | null,
    message: string,
  ) {
    super(message);
  }
}

export function notSupported(param: string, message: string): Refusal {
  return new Refusal(400, 'unsupported_parameter', param, message);
}

export function notFound(param: string, message: string): Refusal {
  return new Refusal(404, `${param}_not_found`, param, message);
}

/** Parameters whose values a part of a request to this server's own API has. */
const PARAM_OF: readonly [pointer: string, param: string][] = [
  ['/train/evaluation', 'validation_file'],
  ['/train/epochs', 'n_epochs'],
  ['/train/steps', 'n_epochs'],
  ['/train/global_batch_size', 'batch_size'],
  ['/train/micro_batch_size', 'batch_size'],
  ['/train/optimizer/lr', 'learning_rate_multiplier'],
  ['/train/objective', 'method'],
  ['/train/seed', 'seed'],
  ['/labels', 'metadata'],
  ['/name', 'suffix'],
  ['/data', 'training_file'],
];

/** Parameters that errors without a field are about. */
const PARAM_OF_CODE: Partial<Record<ErrorCode, string>> = {
  dataset_not_found: 'file_id',
  dataset_empty: 'file',
  dataset_not_utf8: 'file',
  dataset_compression_invalid: 'file',
  dataset_parquet_invalid: 'file',
  dataset_line_invalid: 'file',
  dataset_too_large: 'file',
  dataset_in_use: 'file_id',
  job_not_found: 'fine_tuning_job_id',
  checkpoint_not_found: 'model',
  model_not_found: 'model',
  model_in_use: 'model',
  token_out_of_vocab: 'logit_bias',
  upload_not_found: 'upload_id',
};

/** Messages of the parser of forms, whose errors have no code. */
const MALFORMED_FORM = /unexpected end of multipart data|^Multipart: Boundary not found/i;

/** Names of the parameters of a translated API. */
export interface ParamNames {
  /** Returns the parameter whose value a field has; null if none has. @param given the body of the request */
  ofField(field: FieldError, given: object): string | null;
  /** Parameters that errors without a field are about. */
  ofCode: Partial<Record<ErrorCode, string>>;
}

const PARAMS: ParamNames = { ofField: paramOf, ofCode: PARAM_OF_CODE };

type Asked = Pick<FastifyRequest, 'id' | 'log' | 'body'>;

interface Described {
  status: number;
  body: { error: { message: string; code: string; param: string | null; type: string } };
  /** Seconds; null if the same request will be refused again. */
  retry_after: number | null;
}

/** Answers with an error. */
export function sendRefusal(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendDescribed(describeRefusal(error, request), request, reply);
}

export function sendDescribed(
  { status, body, retry_after }: Described,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  reply.header('x-request-id', request.id);
  leaveRestUnread(reply);
  if (status === 401) reply.header('www-authenticate', CHALLENGE);
  if (retry_after !== null && !reply.hasHeader('retry-after')) reply.header('retry-after', retry_after);
  return reply.code(status).send(body);
}

/** Describes any error, and logs it. */
export function describeRefusal(error: unknown, request: Asked, params = PARAMS): Described {
  if (error instanceof Refusal) return described(error, null);
  if (error instanceof Error && MALFORMED_FORM.test(error.message)) {
    const message = 'the form is malformed: send multipart/form-data with a boundary, up to its closing line';
    return described(new Refusal(400, 'invalid_parameter', null, message), null);
  }
  const given = typeof request.body === 'object' ? request.body : null;
  const problem = toProblem(describeError(error), request.id);
  const { code, detail } = problem;
  if (problem.status >= 500) request.log.error({ err: error, code }, 'request failed');
  else request.log.info({ code, detail }, 'request refused');
  return described(translate(problem, given ?? {}, params), problem.retryable ? RETRY_AFTER_SECONDS : null);
}

type RefusalFields = Pick<Refusal, 'status' | 'code' | 'param' | 'message'>;

/** The official clients have classes of errors by status, and the hosted API answers nothing with 422. */
function translate(
  { status, code, detail, title, errors = [] }: Problem,
  given: object,
  { ofField, ofCode }: ParamNames,
): RefusalFields {
  const fields = errors.map((field) => ({ ...field, param: ofField(field, given) }));
  const [first] = fields;
  const list = fields.map(({ param, pointer, message }) => `${param ?? pointer}: ${message}`);
  const message = list.length === 0 ? (detail ?? title) : list.join('; ');
  if (code === 'prompt_too_long')
    return {
      status: 400,
      code: 'context_length_exceeded',
      param: 'messages' in given ? 'messages' : 'prompt',
      message,
    };
  const param = first === undefined ? (ofCode[code as ErrorCode] ?? null) : first.param;
  return { status: status === 422 ? 400 : status, code, param, message };
}

/** A field of the same name is the parameter itself. */
function paramOf({ pointer }: FieldError, given: object): string | null {
  const known = PARAM_OF.find(([start]) => pointer.startsWith(start))?.[1];
  const [, name = ''] = pointer.split('/');
  return known ?? (name in given ? name : null);
}

function described({ status, code, param, message }: RefusalFields, retryAfter: number | null): Described {
  return { status, body: { error: { message, code, param, type: typeOf(status) } }, retry_after: retryAfter };
}

function typeOf(status: number): string {
  if (status >= 500) return 'server_error';
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  return status === 429 ? 'rate_limit_error' : 'invalid_request_error';
}
