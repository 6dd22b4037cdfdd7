import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { S3Server } from './server.js';
import '../../aws-sdk.js';

const MAX_ATTEMPTS = 4;
const CONNECTION_TIMEOUT_MS = 5_000;
/** Without a byte in either direction. */
const SOCKET_TIMEOUT_MS = 60_000;

export interface S3ClientOptions extends S3Server {
  /** From the usual places (environment, profile, instance role) when absent. */
  credentials?: S3ClientConfig['credentials'];
  /** Tries of each request in all. */
  maxAttempts?: number;
}

/** A client that asks no other host than the endpoint: the SDK follows no redirects by itself. */
export function makeS3Client({ endpoint, region, credentials, maxAttempts }: S3ClientOptions): S3Client {
  return new S3Client({
    ...(endpoint && { endpoint, forcePathStyle: true }),
    ...(region && { region }),
    ...(credentials && { credentials }),
    maxAttempts: maxAttempts ?? MAX_ATTEMPTS,
    // The signature's SHA-256 guards uploads on every server; the SDK's own trailing checksums are refused by many.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: CONNECTION_TIMEOUT_MS, socketTimeout: SOCKET_TIMEOUT_MS },
  });
}
