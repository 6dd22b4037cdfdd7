import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { programPath } from '../../platform/process/programs.js';
import { cleanEnvironment, type Owner } from './stack.js';

/** An autoscaler in a process of its own, which ends with the test. */
export class AutoscalerProcess {
  private child: ChildProcess | null = null;

  private constructor(private readonly env: NodeJS.ProcessEnv) {}

  /** @param env of the autoscaler, beyond this machine's own */
  static start(
    t: Owner,
    capacity: string,
    pools: readonly object[],
    env: NodeJS.ProcessEnv,
  ): AutoscalerProcess {
    const autoscaler = new AutoscalerProcess({
      ...cleanEnvironment(),
      ...env,
      ZEROFLEET_AUTOSCALE_CAPACITY: capacity,
      ZEROFLEET_AUTOSCALE_POOLS: JSON.stringify(pools),
      ZEROFLEET_AUTOSCALE_INTERVAL_SECONDS: '1',
      ZEROFLEET_LOG_LEVEL: process.env.ZF_TEST_LOG ?? 'silent',
    });
    autoscaler.start();
    t.teardown(() => autoscaler.kill());
    return autoscaler;
  }

  /** Starts it again after `kill`. */
  start(): void {
    this.child = spawn(process.execPath, ['--enable-source-maps', programPath('autoscaler/main')], {
      env: this.env,
      // It ends when this channel closes, so that nothing outlives a killed test process.
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  }

  /** Ends it as a crash does. */
  async kill(): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }
}
