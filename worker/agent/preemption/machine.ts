import { ZerofleetError } from '../../../contracts/index.js';
import { AWS_METADATA_URL, type Config } from '../../../platform/config/config.js';
import type { Logger } from '../../../platform/logging/logging.js';
import { retry } from '../../../platform/process/retry.js';
import type { JobStore } from '../../../state/index.js';
import { InstanceMetadata } from './instance-metadata.js';

/** Retries within the time of a lifecycle hook, because a machine that is not terminated costs money. */
const REPORT = { attempts: 60, first_delay_ms: 500, max_delay_ms: 10_000 };

/**
 * Returns the provider's id of this agent's machine; null if the configuration has none.
 * @throws ZerofleetError `invalid_configuration` when the metadata service does not return the id
 */
export async function machineId({
  machine_id,
  preemption_source,
}: Pick<Config, 'machine_id' | 'preemption_source'>): Promise<string | null> {
  if (machine_id !== 'aws') return machine_id;
  const url = preemption_source ?? AWS_METADATA_URL;
  const instance = await new InstanceMetadata(url).read('instance-id').catch((error: unknown) => error);
  if (typeof instance === 'string') return instance.trim();
  throw new ZerofleetError(
    'invalid_configuration',
    `the metadata service at ${url} does not return the id of this instance (${String(instance ?? 'not found')}); ` +
      'set ZEROFLEET_MACHINE_ID to its id, or leave it unset',
  );
}

/** Requests the termination of this machine as soon as no job runs on it. */
export async function reportDrained(
  store: Pick<JobStore, 'reportDrained'>,
  machine: string | null,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  if (machine === null) return;
  try {
    await retry(() => store.reportDrained(machine), REPORT, { retryable: () => true, signal });
    log.info({ machine }, 'termination of this machine requested');
  } catch (error) {
    log.error({ err: error, machine }, 'termination of this machine could not be requested');
  }
}
