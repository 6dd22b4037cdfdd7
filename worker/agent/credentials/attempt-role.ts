import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { ZerofleetError } from '../../../contracts/index.js';
import type { SessionCredentials } from '../../../contracts/rank-protocol.js';
import { type Bucket, reachOf, type SessionOwner, sessionPolicy, sourceOf } from './session-policy.js';
import { SESSION_SECONDS } from './session-time.js';
import '../../../platform/aws-sdk.js';

interface AttemptRoleOptions {
  role_arn: string;
  /** Location of all objects. */
  bucket: Omit<Bucket, 'partition'>;
  /** URL of the STS server; null: AWS. */
  endpoint: string | null;
  region: string | undefined;
}

/** Tags of a session, which the policies of its role name (infra/terraform/modules/workers/attempt-role.tf). */
const JOB_TAG = 'zerofleet:job';
const SOURCE_TAG = 'zerofleet:from';

const CLIENT = {
  maxAttempts: 3,
  requestHandler: { connectionTimeout: 5_000, requestTimeout: 10_000 },
};

/** IAM role that is assumed for one job, or one model, at a time. */
export class AttemptRole {
  private readonly client: STSClient;

  constructor(private readonly options: AttemptRoleOptions) {
    const { endpoint, region } = options;
    this.client = new STSClient({ ...CLIENT, ...(endpoint && { endpoint }), ...(region && { region }) });
  }

  /**
   * Returns credentials for an hour that allow only what the owner needs.
   * @param name session name, as in the logs of AWS
   * @throws ZerofleetError `credentials_unavailable`; `isRefusal` (refusal.ts) tells whether it is final
   */
  async assume(owner: SessionOwner, name: string): Promise<SessionCredentials> {
    const { role_arn, bucket } = this.options;
    const partition = role_arn.split(':')[1] ?? 'aws';
    const command = new AssumeRoleCommand({
      RoleArn: role_arn,
      RoleSessionName: name,
      DurationSeconds: SESSION_SECONDS,
      Policy: sessionPolicy({ ...bucket, partition }, reachOf(owner)),
      Tags: [
        { Key: JOB_TAG, Value: owner.id },
        { Key: SOURCE_TAG, Value: sourceOf(owner) },
      ],
    });
    const { Credentials: given } = await this.client.send(command).catch((error: unknown) => {
      throw unavailable(role_arn, error);
    });
    if (!given?.AccessKeyId || !given.SecretAccessKey || !given.SessionToken || !given.Expiration)
      throw unavailable(role_arn, new Error('the response has no credentials'));
    return {
      access_key_id: given.AccessKeyId,
      secret_access_key: given.SecretAccessKey,
      session_token: given.SessionToken,
      expires_at: given.Expiration.toISOString(),
    };
  }

  close(): void {
    this.client.destroy();
  }
}

function unavailable(role: string, cause: unknown): ZerofleetError {
  const { name, message } = cause as Error;
  return new ZerofleetError(
    'credentials_unavailable',
    `${role} could not be assumed: ${name}: ${message}; its trust policy must allow this worker, with the session tags ` +
      `${JOB_TAG} and ${SOURCE_TAG} (ZEROFLEET_ATTEMPT_ROLE)`,
    { cause },
  );
}
