/** Messages between a thread pool and its threads. */
import { type FieldError, isErrorCode, ZerofleetError } from '../../contracts/index.js';

/** Message of the pool: a task, or bytes that a task requested. */
export type ToThread =
  | { kind: 'task'; name: string; input: unknown }
  | { kind: 'bytes'; read: number; bytes: Uint8Array }
  | { kind: 'failed'; read: number; error: SentError };

/** Message of a thread: a task has started, requests bytes, or has ended. */
export type FromThread =
  | { kind: 'started' }
  | { kind: 'read'; read: number; begin: number; end: number; file: string | undefined }
  | { kind: 'done'; value: unknown }
  | { kind: 'error'; error: SentError };

/** Serialized error. */
export interface SentError {
  code: string | null;
  message: string;
  fields: readonly FieldError[];
  details: Readonly<Record<string, unknown>>;
  stack: string | undefined;
}

export function sentError(error: unknown): SentError {
  const { code, message, fields, details, stack } = error as Partial<ZerofleetError>;
  return {
    code: typeof code === 'string' ? code : null,
    message: typeof message === 'string' ? message : String(error),
    fields: fields ?? [],
    details: details ?? {},
    stack,
  };
}

export function receivedError({ code, message, fields, details, stack }: SentError): Error {
  if (isErrorCode(code)) return new ZerofleetError(code, message, { fields: [...fields], details });
  const error = Object.assign(new Error(message), code !== null && { code });
  if (stack !== undefined) error.stack = stack;
  return error;
}

/**
 * Returns the buffers owned exclusively by typed arrays among a message's fields, which are transferred
 * instead of copied.
 */
export function ownBuffers(message: unknown): ArrayBuffer[] {
  if (typeof message !== 'object' || message === null) return [];
  return Object.values(message).flatMap((field: unknown) =>
    ArrayBuffer.isView(field) &&
    field.buffer instanceof ArrayBuffer &&
    field.byteLength === field.buffer.byteLength
      ? [field.buffer]
      : [],
  );
}
