import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { S3Server } from './server.js';
import '../../aws-sdk.js';

const MAX_ATTEMPTS = 4;
const CONNECTION_TIMEOUT_MS = 5_000;
/** Inactivity in both directions. */
const SOCKET_TIMEOUT_MS = 60_000;

export interface S3ClientOptions extends S3Server {
  /** By default from the usual sources (environment, profile, instance role). */
  credentials?: S3ClientConfig['credentials'];
  /** Total attempts of each request. */
  maxAttempts?: number;
}

/** Creates a client that contacts only the endpoint: the SDK follows no redirects by itself. */
export function makeS3Client({
  endpoint,
  forcePathStyle = true,
  region,
  credentials,
  maxAttempts,
}: S3ClientOptions): S3Client {
  return new S3Client({
    ...(endpoint && { endpoint, forcePathStyle }),
    ...(region && { region }),
    ...(credentials && { credentials }),
    maxAttempts: maxAttempts ?? MAX_ATTEMPTS,
    // The signature's SHA-256 protects uploads on every server; many refuse the SDK's trailing checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: CONNECTION_TIMEOUT_MS, socketTimeout: SOCKET_TIMEOUT_MS },
  });
}
