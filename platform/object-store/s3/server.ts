/** Choice of the server, separate from code that loads the SDK, which is large. */
export interface S3Server {
  /** URL of an S3-compatible server, with path-style addressing. */
  endpoint?: string;
  /** By default from `AWS_REGION` or the profile. */
  region?: string;
}

const DEFAULT_REGION = 'us-east-1';

/**
 * Returns the server of the environment. Servers other than AWS accept any region, but the SDK requires one.
 */
export function s3Server(endpoint: string | null | undefined): S3Server {
  if (!endpoint) return {};
  const region = process.env.AWS_REGION ?? process.env.AWS_DEFAULT_REGION ?? DEFAULT_REGION;
  return { endpoint, region };
}
