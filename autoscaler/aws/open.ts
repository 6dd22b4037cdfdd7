import { AutoScalingClient } from '@aws-sdk/client-auto-scaling';
import { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import { ZerofleetError } from '../../contracts/index.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { AutoscalerMetrics } from '../metrics.js';
import { AwsCapacity } from './aws-capacity.js';
import { CloudWatchPublisher } from './cloudwatch.js';
import { Groups } from './groups.js';
import '../../platform/aws-sdk.js';

const MAX_ATTEMPTS = 6;
const CLIENT = {
  maxAttempts: MAX_ATTEMPTS,
  // Adaptive mode lowers the request rate after throttling, in addition to the backoff.
  retryMode: 'adaptive',
  requestHandler: { connectionTimeout: 5_000, requestTimeout: 10_000 },
};

/**
 * Opens the groups of the region and account that the usual `AWS_*` variables name.
 * @throws ZerofleetError `invalid_configuration` when no region is named
 */
export async function openAwsCapacity(log: Logger): Promise<AwsCapacity> {
  const client = new AutoScalingClient(CLIENT);
  await requireRegion(client.config.region);
  return new AwsCapacity({ groups: new Groups(client), log });
}

/** @throws ZerofleetError `invalid_configuration` when no region is named */
export async function openCloudWatch(
  namespace: string,
  metrics: AutoscalerMetrics,
  log: Logger,
): Promise<CloudWatchPublisher> {
  const client = new CloudWatchClient(CLIENT);
  await requireRegion(client.config.region);
  return new CloudWatchPublisher({ client, namespace, metrics, log });
}

async function requireRegion(region: () => Promise<string>): Promise<void> {
  try {
    await region();
  } catch {
    throw new ZerofleetError(
      'invalid_configuration',
      'no region is named; set AWS_REGION to the region of the groups',
    );
  }
}
