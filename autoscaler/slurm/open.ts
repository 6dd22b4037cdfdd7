import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../platform/config/config.js';
import { objectStoreUrl } from '../../platform/config/stores.js';
import type { Logger } from '../../platform/logging/logging.js';
import { programPath } from '../../platform/process/programs.js';
import type { AutoscalerMetrics } from '../metrics.js';
import { SlurmCommands } from './commands.js';
import { SlurmCapacity } from './slurm-capacity.js';

/** Variables that describe the machine of the autoscaler, or the allocation in which it runs itself. */
const OWN = /^(ZEROFLEET_(ADDRESS|DATA_DIR|HOST|MACHINE_ID)|(SLURM|SLURMD|SBATCH|SQUEUE|SCANCEL|SACCT)_.*)$/;

/**
 * Opens the Slurm cluster of the commands on the PATH, or of SLURM_CONF.
 * @param env environment of agents, without what configures the autoscaler alone
 */
export async function openSlurmCapacity(
  config: Config,
  env: NodeJS.ProcessEnv,
  metrics: AutoscalerMetrics,
  log: Logger,
): Promise<SlurmCapacity> {
  const shared = sharedEnvironment(env);
  const logDir = join(config.data_dir, 'slurm');
  await mkdir(logDir, { recursive: true });
  return new SlurmCapacity({
    commands: new SlurmCommands(shared),
    installation: config.slurm_installation,
    agent: {
      command: [process.execPath, '--enable-source-maps', programPath('worker/agent/main')],
      env: {
        ...shared,
        ZEROFLEET_REDIS_URL: config.redis_url ?? undefined,
        ZEROFLEET_OBJECT_STORE: objectStoreUrl(config),
      },
      log_dir: logDir,
    },
    log,
    onEnded: (pool, type, cause) => metrics.machineEnded(pool, type, cause),
  });
}

/** Returns the variables that apply to every machine of the cluster. */
export function sharedEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => name === 'SLURM_CONF' || !OWN.test(name)));
}
