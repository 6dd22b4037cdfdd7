import { ZerofleetError } from '../../../contracts/index.js';
import { AWS_METADATA_URL, type Config } from '../../../platform/config/config.js';
import type { Logger } from '../../../platform/logging/logging.js';
import { retry } from '../../../platform/process/retry.js';
import type { JobStore } from '../../../state/index.js';
import { InstanceMetadata } from './instance-metadata.js';

/** Retries within the time of a lifecycle hook, because a machine that is not terminated costs money. */
const REPORT = { attempts: 60, first_delay_ms: 500, max_delay_ms: 10_000 };

type Sources = Pick<Config, 'machine_id' | 'topology' | 'preemption_source'>;

/**
 * Returns the provider's id of this agent's machine; null if the configuration has none.
 * @throws ZerofleetError `invalid_configuration` when the metadata service does not return the id
 */
export async function machineId(config: Omit<Sources, 'topology'>): Promise<string | null> {
  if (config.machine_id !== 'aws') return config.machine_id;
  return fromMetadata(config, 'instance-id', 'ZEROFLEET_MACHINE_ID');
}

/**
 * Returns the domains of the network that contain this agent's machine, the largest first.
 * @throws ZerofleetError `invalid_configuration` when the metadata service does not return the zone
 */
export async function machineTopology(config: Omit<Sources, 'machine_id'>): Promise<string[]> {
  if (config.topology.join() !== 'aws') return [...config.topology];
  return [await fromMetadata(config, 'placement/availability-zone', 'ZEROFLEET_TOPOLOGY')];
}

async function fromMetadata(
  { preemption_source }: Pick<Config, 'preemption_source'>,
  name: string,
  variable: string,
): Promise<string> {
  const url = preemption_source ?? AWS_METADATA_URL;
  const value = await new InstanceMetadata(url).read(name).catch((error: unknown) => error);
  if (typeof value === 'string') return value.trim();
  throw new ZerofleetError(
    'invalid_configuration',
    `the metadata service at ${url} does not return the ${name} of this instance (${String(value ?? 'not found')}); ` +
      `set ${variable} to its value, or leave it unset`,
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
