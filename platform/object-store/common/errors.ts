import { ERROR_CATALOGUE, type ErrorCode, ZerofleetError } from '../../../contracts/index.js';

/** Remedies for each code of the object store. */
const OBJECT_STORE_HINTS = {
  object_not_found: 'Nothing is stored under this key.',
  precondition_failed: 'The key exists already and createOnly was asked for.',
  bucket_not_found: 'Create the bucket (or directory), or correct ZEROFLEET_OBJECT_STORE.',
  access_denied: 'Check the credentials (AWS_*) and the permissions of the bucket or directory.',
  credentials_unavailable: 'The credentials (AWS_*) have expired; renew them.',
  disk_full: 'Free space in the object store or raise its quota.',
  object_store_unavailable: 'Check that the object store runs and can be reached.',
  throttled: 'The object store asks to slow down; try again later.',
  invalid_key: 'Keys are segments of [A-Za-z0-9._=-] joined by slashes.',
  invalid_range: 'The object is shorter than the requested range.',
  invalid_argument: 'The call itself is wrong; see the message.',
} as const satisfies Partial<Record<ErrorCode, string>>;

export type ObjectStoreCode = keyof typeof OBJECT_STORE_HINTS;

/** Error of the object store: every rejection except errors of a put body's own iterator. */
export class ObjectStoreError extends ZerofleetError {
  declare readonly code: ObjectStoreCode;

  constructor(code: ObjectStoreCode, message: string, options?: { cause?: unknown }) {
    super(code, message, options);
  }

  /** True if the same call can succeed later without a change by the caller. */
  get retryable(): boolean {
    return ERROR_CATALOGUE[this.code].retryable;
  }

  /** Returns the remedy in one sentence. */
  get hint(): string {
    return OBJECT_STORE_HINTS[this.code];
  }
}
