import { ZerofleetError } from '../../contracts/index.js';
import { AWS_METADATA_URL, type Config } from '../../platform/config/config.js';
import type { Logger } from '../../platform/logging/logging.js';
import { retry } from '../../platform/process/retry.js';
import type { JobStorePort } from '../../state/index.js';
import { InstanceMetadata } from './instance-metadata.js';

/** A machine that nobody ends costs money, so it is said as often as it takes, within the time that a lifecycle hook has. */
const REPORT = { attempts: 60, first_delay_ms: 500, max_delay_ms: 10_000 };

/**
 * The machine of this agent, as it is called where machines come from; null where the configuration does not say.
 * @throws ZerofleetError `invalid_configuration` when the metadata service that should say it does not
 */
export async function machineOf({
  machine_id,
  preemption_source,
}: Pick<Config, 'machine_id' | 'preemption_source'>): Promise<string | null> {
  if (machine_id !== 'aws') return machine_id;
  const url = preemption_source ?? AWS_METADATA_URL;
  const instance = await new InstanceMetadata(url).read('instance-id').catch((error: unknown) => error);
  if (typeof instance === 'string') return instance.trim();
  throw new ZerofleetError(
    'invalid_configuration',
    `the metadata service at ${url} does not say which instance this is (${String(instance ?? 'not found')}); ` +
      'set ZEROFLEET_MACHINE_ID to its id, or leave it unset',
  );
}

/** Asks for the end of a machine, as soon as no job is on it. */
export async function askForEnd(
  store: Pick<JobStorePort, 'reportDrained'>,
  machine: string | null,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  if (machine === null) return;
  try {
    await retry(() => store.reportDrained(machine), REPORT, { retryable: () => true, signal });
    log.info({ machine }, 'the machine may end');
  } catch (error) {
    log.error({ err: error, machine }, 'nobody knows that the machine may end');
  }
}
