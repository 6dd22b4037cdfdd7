import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import type { Logger } from '../../../platform/logging/logging.js';
import type { PreemptionNotice, PreemptionSource } from './source.js';

const run = promisify(execFile);
const TIMEOUT_MS = 3_000;
/**
 * Slurm's default for `KillWait`, the time between SIGTERM and SIGKILL of a job that is over its time limit, preempted
 * without a grace period, or cancelled.
 */
const KILL_WAIT_MS = 30_000;

interface SlurmAllocationOptions {
  /** Environment of the allocation. */
  env: NodeJS.ProcessEnv;
  log: Logger;
}

/**
 * The Slurm allocation of this agent. Slurm announces its end by SIGTERM, and knows its time: the time limit, or the
 * end of a preemption's grace period. SIGTERM may come again.
 */
export class SlurmAllocation implements PreemptionSource {
  constructor(private readonly options: SlurmAllocationOptions) {}

  async watch(signal: AbortSignal): Promise<PreemptionNotice | null> {
    const terminated = await once(process, 'SIGTERM', { signal }).then(
      () => true,
      () => false,
    );
    return terminated ? this.notice() : null;
  }

  /** Asks Slurm once: all agents of a cluster asking at intervals would be a load. */
  private async notice(): Promise<PreemptionNotice> {
    const { env, log } = this.options;
    try {
      const args = ['--noheader', '--states=all', `--jobs=${env.SLURM_JOB_ID}`, '--format=%T %e'];
      const { stdout } = await run('squeue', args, {
        env: { ...env, SLURM_TIME_FORMAT: '%s' },
        timeout: TIMEOUT_MS,
      });
      const [state = '', endsAt] = stdout.trim().split(/\s+/);
      if (state === 'RUNNING' && Number(endsAt) > 0)
        return { cause: 'end of the Slurm allocation', terminates_at: Number(endsAt) * 1000 };
      return { cause: `Slurm job ${state}`, terminates_at: Date.now() + KILL_WAIT_MS };
    } catch (error) {
      log.warn({ err: error }, 'squeue does not report the end of this allocation');
      return { cause: 'SIGTERM in a Slurm allocation', terminates_at: null };
    }
  }
}
