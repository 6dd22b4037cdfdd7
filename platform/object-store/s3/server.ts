/** Which server is asked; apart from what needs the SDK, which is large. */
export interface S3Server {
  /** URL of a server that is not AWS; addressed by path. */
  endpoint?: string;
  /** From `AWS_REGION` or the profile when absent. */
  region?: string;
}

const DEFAULT_REGION = 'us-east-1';

/** What the environment says of a server. Servers other than AWS take any region, but the SDK insists on one. */
export function s3Server(endpoint: string | null | undefined): S3Server {
  if (!endpoint) return {};
  const region = process.env.AWS_REGION ?? process.env.AWS_DEFAULT_REGION ?? DEFAULT_REGION;
  return { endpoint, region };
}
