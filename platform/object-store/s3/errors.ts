import { type ObjectStoreCode, ObjectStoreError } from '../common/errors.js';

/** Error names of S3 and compatible servers. */
const BY_NAME: Readonly<Record<string, ObjectStoreCode>> = {
  NoSuchKey: 'object_not_found',
  NoSuchBucket: 'bucket_not_found',
  AccessDenied: 'access_denied',
  AllAccessDisabled: 'access_denied',
  CredentialsProviderError: 'access_denied',
  ExpiredToken: 'credentials_unavailable',
  InvalidAccessKeyId: 'access_denied',
  InvalidToken: 'access_denied',
  RequestTimeTooSkewed: 'access_denied',
  SignatureDoesNotMatch: 'access_denied',
  TokenRefreshRequired: 'credentials_unavailable',
  InsufficientCapacity: 'disk_full',
  QuotaExceeded: 'disk_full',
  XMinioStorageFull: 'disk_full',
  PreconditionFailed: 'precondition_failed',
  InvalidRange: 'invalid_range',
  KeyTooLongError: 'invalid_key',
  RequestLimitExceeded: 'throttled',
  SlowDown: 'throttled',
  Throttling: 'throttled',
  ThrottlingException: 'throttled',
  TooManyRequestsException: 'throttled',
};

/** Codes by status, for answers without a body that names the error, such as answers to HEAD. */
const BY_STATUS: Readonly<Record<number, ObjectStoreCode>> = {
  401: 'access_denied',
  403: 'access_denied',
  404: 'object_not_found',
  412: 'precondition_failed',
  416: 'invalid_range',
  429: 'throttled',
  507: 'disk_full',
};

/** Common fields of the SDK's errors; network errors have a `code` of Node.js instead. */
interface SdkError {
  name?: string;
  Code?: string;
  code?: string;
  message?: string;
  $metadata?: { httpStatusCode?: number; attempts?: number };
}

/**
 * Converts an error of the SDK, of the network or of a response body to an `ObjectStoreError`; returns one
 * unchanged.
 * @param subject key or bucket for the message
 */
export function s3Error(error: unknown, subject: string): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error;
  const { name = '', Code = '', code: errno, message, $metadata } = error as SdkError;
  const status = $metadata?.httpStatusCode ?? 0;
  const code = BY_NAME[Code] ?? BY_NAME[name] ?? BY_STATUS[status] ?? 'object_store_unavailable';
  const description = [Code || name, errno, status || '', message].filter(Boolean).join(' ');
  return new ObjectStoreError(code, `${subject}: ${description}`, { cause: error });
}

/** Returns whether the failed request was sent more than once. */
export function wasRetried(error: unknown): boolean {
  return ((error as SdkError).$metadata?.attempts ?? 1) > 1;
}

/**
 * Returns whether a failed request may have had its effect: its answer was lost, or the server failed, perhaps after
 * the effect.
 */
export function mayHaveHadEffect(error: unknown): boolean {
  const status = (error as SdkError).$metadata?.httpStatusCode;
  return status === undefined || status >= 500;
}

/**
 * Returns whether a conditional write conflicted with another one in progress, so that neither is decided
 * yet.
 */
export function isConditionalConflict(error: unknown): boolean {
  return (error as SdkError).name === 'ConditionalRequestConflict';
}
