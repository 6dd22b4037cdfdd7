/** A stack whose agents are allocations of a real Slurm, requested by an autoscaler. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { programPath } from '../../platform/process/programs.js';
import { startSlurm, type TestSlurm } from '../../platform/testing/slurm.js';
import { Cluster } from './cluster.js';
import { cleanEnvironment } from './stack.js';

interface SlurmStackOptions {
  nodes: number;
  grace_seconds: number;
  /** ZEROFLEET_AUTOSCALE_POOLS */
  pools: readonly object[];
}

export class SlurmStack {
  private child: ChildProcess | null = null;

  private constructor(
    readonly cluster: Cluster,
    readonly slurm: TestSlurm,
    private readonly dir: string,
    private readonly pools: readonly object[],
  ) {}

  /** A stack with an autoscaler and without agents; it ends with the test. */
  static async start(t: Test, { nodes, grace_seconds, pools }: SlurmStackOptions): Promise<SlurmStack> {
    const cluster = await Cluster.start(t);
    const slurm = await startSlurm({ nodes, grace_seconds });
    t.teardown(() => slurm.stop());
    const dir = mkdtempSync(join(tmpdir(), 'zf-slurm-agents-'));
    t.teardown(() => rmSync(dir, { recursive: true, force: true }));
    const stack = new SlurmStack(cluster, slurm, dir, pools);
    stack.startAutoscaler();
    t.teardown(() => stack.killAutoscaler());
    return stack;
  }

  startAutoscaler(): void {
    const env = {
      ...cleanEnvironment(),
      ...this.cluster.env,
      ...this.slurm.env,
      ZEROFLEET_AUTOSCALE_CAPACITY: 'slurm',
      ZEROFLEET_AUTOSCALE_POOLS: JSON.stringify(this.pools),
      ZEROFLEET_AUTOSCALE_INTERVAL_SECONDS: '1',
      ZEROFLEET_DATA_DIR: this.dir,
      ZEROFLEET_THREADS_PER_RANK: '1',
      ZEROFLEET_LOG_LEVEL: process.env.ZF_TEST_LOG ?? 'silent',
      // Where nodes keep temporary files.
      TMPDIR: this.dir,
    };
    const program = programPath('autoscaler/main');
    this.child = spawn(process.execPath, ['--enable-source-maps', program], {
      env,
      // It ends when this channel closes, so that nothing outlives a killed test process.
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  }

  /** Ends the autoscaler as a crash does. */
  async killAutoscaler(): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** Ids of Slurm's jobs in a state. */
  async allocations(state: string, partition = 'main'): Promise<string[]> {
    const options = ['--noheader', `--states=${state}`, `--partition=${partition}`, '--format=%i'];
    const text = await this.slurm.run('squeue', ...options);
    return text.split('\n').filter((line) => line !== '');
  }
}
