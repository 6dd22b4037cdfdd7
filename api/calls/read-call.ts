/** The task that reads a call in a thread: a call may have millions of numbers. */
import { isUtf8 } from 'node:buffer';
import {
  type Call,
  type CallType,
  type FieldError,
  nearestName,
  ZerofleetError,
} from '../../contracts/index.js';
import { callText } from '../../formats/calls/call-log.js';
import { type CallBounds, checkCall, completeCall } from '../../job-document/index.js';
import { type JsonLimits, jsonExcess } from '../../platform/json-limits.js';
import { toFieldErrors } from '../http/field-errors.js';
import { fieldSummary } from '../http/problem.js';
import { compileComponent } from '../http/validators.js';
import type { ComponentSchemas } from './call-schemas.js';

/** A pass has at most 2,097,152 tokens with four numbers each. */
const LIMITS: JsonLimits = { depth: 10, values: 12_000_000 };

/** A larger call may have millions of bad fields: only the first one is named. */
const SMALL_BYTES = 1024 * 1024;

const SCHEMA_OF = {
  forward_backward: 'PassCall',
  forward: 'PassCall',
  optim_step: 'OptimStepCall',
  sample: 'SampleCall',
  save_state: 'SaveStateCall',
  load_state: 'LoadStateCall',
  finish: 'FinishCall',
} as const satisfies Record<CallType, string>;

interface CallInput {
  body: Uint8Array;
  schemas: ComponentSchemas;
  bounds: CallBounds;
  /** Name of the request, in place of that which the call has. */
  request?: string;
}

/** A call that can be stored. */
export interface ReadCall {
  type: CallType;
  /** Text of the whole call. */
  content: Uint8Array;
}

/** @throws ZerofleetError `malformed_json`, `validation_failed` */
export function readCall({ body, schemas, bounds, request }: CallInput): ReadCall {
  const given = parsed(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  const errors = schemaErrors(given, schemas, body.length <= SMALL_BYTES);
  if (errors.length > 0) throw invalidCall(errors);
  const broken = checkCall(given as Call, bounds);
  if (broken.length > 0) throw invalidCall(broken);
  const call = completeCall({ ...(given as Call), ...(request !== undefined && { request }) }, bounds);
  return { type: call.type, content: Buffer.from(callText(call)) };
}

function parsed(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new ZerofleetError('malformed_json', 'the body is not UTF-8');
  const excess = jsonExcess(bytes, LIMITS);
  if (excess !== null) throw new ZerofleetError('malformed_json', `the body ${excess}`);
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw new ZerofleetError('malformed_json', `the body is not JSON: ${(error as Error).message}`);
  }
}

function schemaErrors(given: unknown, schemas: ComponentSchemas, allErrors: boolean): FieldError[] {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return [{ pointer: '', code: 'wrong_type', message: 'must be object' }];
  const { type } = given as { type?: unknown };
  const types = Object.keys(SCHEMA_OF);
  if (type === undefined) return [{ pointer: '/type', code: 'missing_field', message: 'type is required' }];
  if (typeof type !== 'string' || !types.includes(type)) {
    const suggestion = typeof type === 'string' ? nearestName(type, types) : undefined;
    const message = `must be one of ${types.join(', ')}`;
    return [{ pointer: '/type', code: 'unknown_value', message, ...(suggestion && { suggestion }) }];
  }
  const validate = validatorOf(SCHEMA_OF[type as CallType], { schemas, allErrors });
  return validate(given) ? [] : toFieldErrors(validate.errors ?? []);
}

const validators = new Map<string, ReturnType<typeof compileComponent>>();

function validatorOf(
  name: string,
  { schemas, allErrors }: { schemas: ComponentSchemas; allErrors: boolean },
): ReturnType<typeof compileComponent> {
  const key = `${name} ${allErrors}`;
  const known = validators.get(key) ?? compileComponent({ components: { schemas } }, name, { allErrors });
  validators.set(key, known);
  return known;
}

function invalidCall(fields: FieldError[]): ZerofleetError {
  return new ZerofleetError('validation_failed', fieldSummary(fields), { fields });
}
