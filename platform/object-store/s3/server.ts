/** Choice of the server, separate from code that loads the SDK, which is large. */
export interface S3Server {
  /** URL of an S3-compatible server. */
  endpoint?: string;
  /** True, the default with an endpoint: requests name the bucket in their path. False: in the host name. */
  forcePathStyle?: boolean;
  /** By default from `AWS_REGION` or the profile. */
  region?: string;
}

const DEFAULT_REGION = 'us-east-1';
/** Where the host name of an endpoint begins with the bucket. */
const BUCKET = '{bucket}.';

/**
 * Returns the server of the environment. Servers other than AWS accept any region, but the SDK requires one.
 * @param given `ZEROFLEET_S3_ENDPOINT`
 */
export function s3Server(given: string | null | undefined): S3Server {
  if (!given) return {};
  const region = process.env.AWS_REGION ?? process.env.AWS_DEFAULT_REGION ?? DEFAULT_REGION;
  const endpoint = given.replace(BUCKET, '');
  return { endpoint, region, forcePathStyle: endpoint === given };
}
