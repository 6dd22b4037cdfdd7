/** A stack whose agents are allocations of a real Slurm, requested by an autoscaler. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { startSlurm, type TestSlurm } from '../../platform/testing/slurm.js';
import { AutoscalerProcess } from './autoscaler-process.js';
import { Cluster } from './cluster.js';

interface SlurmStackOptions {
  nodes: number;
  grace_seconds: number;
  /** ZEROFLEET_AUTOSCALE_POOLS */
  pools: readonly object[];
}

export class SlurmStack {
  private constructor(
    readonly cluster: Cluster,
    readonly slurm: TestSlurm,
    readonly autoscaler: AutoscalerProcess,
  ) {}

  /** A stack with an autoscaler and without agents; it ends with the test. */
  static async start(t: Test, { nodes, grace_seconds, pools }: SlurmStackOptions): Promise<SlurmStack> {
    const cluster = await Cluster.start(t);
    const slurm = await startSlurm({ nodes, grace_seconds });
    t.teardown(() => slurm.stop());
    const dir = mkdtempSync(join(tmpdir(), 'zf-slurm-agents-'));
    t.teardown(() => rmSync(dir, { recursive: true, force: true }));
    const autoscaler = AutoscalerProcess.start(t, 'slurm', pools, {
      ...cluster.env,
      ...slurm.env,
      ZEROFLEET_DATA_DIR: dir,
      ZEROFLEET_THREADS_PER_RANK: '1',
      // Where nodes keep temporary files.
      TMPDIR: dir,
    });
    return new SlurmStack(cluster, slurm, autoscaler);
  }

  /** Ids of Slurm's jobs in a state. */
  async allocations(state: string, partition = 'main'): Promise<string[]> {
    const options = ['--noheader', `--states=${state}`, `--partition=${partition}`, '--format=%i'];
    const text = await this.slurm.run('squeue', ...options);
    return text.split('\n').filter((line) => line !== '');
  }
}
