/** Stable codes of the object store, with what each means for the caller. */
export const OBJECT_STORE_CODES = {
  object_not_found: { retryable: false, hint: 'Nothing is stored under this key.' },
  precondition_failed: { retryable: false, hint: 'The key exists already and createOnly was asked for.' },
  bucket_not_found: {
    retryable: false,
    hint: 'Create the bucket (or directory), or correct ZEROFLEET_OBJECT_STORE.',
  },
  access_denied: {
    retryable: false,
    hint: 'Check the credentials (AWS_*) and the permissions of the bucket or directory.',
  },
  disk_full: { retryable: true, hint: 'Free space in the object store or raise its quota.' },
  object_store_unavailable: { retryable: true, hint: 'Check that the object store runs and can be reached.' },
  throttled: { retryable: true, hint: 'The object store asks to slow down; try again later.' },
  invalid_key: { retryable: false, hint: 'Keys are segments of [A-Za-z0-9._=-] joined by slashes.' },
  invalid_range: { retryable: false, hint: 'The object is shorter than the requested range.' },
  invalid_argument: { retryable: false, hint: 'The call itself is wrong; see the message.' },
} as const;

export type ObjectStoreCode = keyof typeof OBJECT_STORE_CODES;

/** The only error type that an object store rejects with (but for errors of a put body's own iterator). */
export class ObjectStoreError extends Error {
  override readonly name = 'ObjectStoreError';
  readonly code: ObjectStoreCode;
  /** Whether the same call can succeed later without anybody changing the caller. */
  readonly retryable: boolean;
  /** One sentence that says what to do. */
  readonly hint: string;

  constructor(code: ObjectStoreCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.retryable = OBJECT_STORE_CODES[code].retryable;
    this.hint = OBJECT_STORE_CODES[code].hint;
  }
}
