import { ZerofleetError } from '../../../contracts/index.js';
import type { RetryPolicy, SessionCredentials } from '../../../contracts/rank-protocol.js';
import type { Config } from '../../../platform/config/config.js';
import type { Logger } from '../../../platform/logging/logging.js';
import { s3Server } from '../../../platform/object-store/s3/server.js';
import type { AgentMetrics } from '../metrics/agent-metrics.js';
import { JobSession } from './job-session.js';
import type { SessionOwner } from './session-policy.js';

interface SessionOptions {
  /** Purpose in letters, digits and hyphens; logs of AWS show it behind the id of the owner. */
  purpose: string;
  signal: AbortSignal;
  /** Called on the first of consecutive failed renewals. */
  onFailed?(error: unknown): void;
}

interface Role {
  assume(owner: SessionOwner, name: string): Promise<SessionCredentials>;
  close(): void;
}

/** Opens sessions of the configured role, one for each purpose of a job or a model. */
export class Sessions {
  constructor(
    private readonly role: Role,
    private readonly options: { retry: RetryPolicy; metrics: AgentMetrics; log: Logger },
  ) {}

  /**
   * Opens a session.
   * @throws ZerofleetError `credentials_unavailable`; the signal's reason
   */
  open(owner: SessionOwner, { purpose, signal, onFailed }: SessionOptions): Promise<JobSession> {
    const { retry, metrics, log } = this.options;
    return JobSession.open({
      assume: () =>
        this.role.assume(owner, `${owner.id}-${purpose}`).catch((error: unknown) => {
          metrics.credentialsFailed();
          // Alarms match this line (infra/terraform/modules/observability).
          log.warn({ err: error, owner: owner.id, purpose }, 'credentials not given');
          throw error;
        }),
      retry,
      signal,
      onFailed: onFailed ?? (() => undefined),
    });
  }

  async close(): Promise<void> {
    this.role.close();
  }
}

/**
 * Creates the sessions of the configuration; null: child processes use the credentials of this process.
 * @throws ZerofleetError `invalid_configuration`
 */
export async function openSessions(
  { attempt_role, s3_endpoint }: Pick<Config, 'attempt_role' | 's3_endpoint'>,
  objectStoreUrl: string,
  options: { retry: RetryPolicy; metrics: AgentMetrics; log: Logger },
): Promise<Sessions | null> {
  if (attempt_role === null) return null;
  const { protocol, hostname: bucket, pathname } = new URL(objectStoreUrl);
  const region = process.env.AWS_REGION ?? process.env.AWS_DEFAULT_REGION;
  if (protocol !== 's3:' || !region)
    throw new ZerofleetError(
      'invalid_configuration',
      'ZEROFLEET_ATTEMPT_ROLE needs an object store in S3 (ZEROFLEET_OBJECT_STORE=s3://…) and AWS_REGION; set both, or unset ZEROFLEET_ATTEMPT_ROLE',
    );
  // Servers other than AWS serve STS and S3 at one endpoint.
  const endpoint = process.env.AWS_ENDPOINT_URL_STS ?? s3Server(s3_endpoint).endpoint ?? null;
  const prefix = pathname.replace(/^\/+|\/+$/g, '');
  // The SDK is large; workers without a role do not load it.
  const { AttemptRole } = await import('./attempt-role.js');
  return new Sessions(
    new AttemptRole({
      role_arn: attempt_role,
      bucket: { bucket, prefix, kms: s3_endpoint === null },
      endpoint,
      region,
    }),
    options,
  );
}

/**
 * Calls `use` with a session of its own, or with null if no role is configured.
 * @throws ZerofleetError `credentials_unavailable`; the signal's reason; errors of `use`
 */
export async function withSession<T>(
  { sessions }: { sessions: Sessions | null },
  owner: SessionOwner,
  options: SessionOptions,
  use: (session: JobSession | null) => Promise<T>,
): Promise<T> {
  const session = (await sessions?.open(owner, options)) ?? null;
  try {
    return await use(session);
  } finally {
    await session?.close();
  }
}
