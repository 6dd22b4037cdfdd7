/**
 * A stack whose agents are pods of a real control plane, requested by an autoscaler with the rights of the manifests.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { programPath } from '../../platform/process/programs.js';
import { projectRoot } from '../../platform/process/root.js';
import { type AuditEvent, ControlPlane } from '../../platform/testing/kubernetes/control-plane.js';
import { AutoscalerProcess } from './autoscaler-process.js';
import { Cluster } from './cluster.js';

const run = promisify(execFile);

export const NAMESPACE = 'training';
const ACCOUNT = 'zerofleet-autoscaler';
export const IMAGE = 'worker:1';

interface KubernetesStackOptions {
  nodes: number;
  /** ZEROFLEET_AUTOSCALE_POOLS */
  pools: readonly object[];
}

export class KubernetesStack {
  private constructor(
    readonly cluster: Cluster,
    readonly plane: ControlPlane,
    readonly autoscaler: AutoscalerProcess,
  ) {}

  /** A stack with an autoscaler and without agents; it ends with the test. */
  static async start(t: Test, { nodes, pools }: KubernetesStackOptions): Promise<KubernetesStack> {
    const cluster = await Cluster.start(t);
    const command = [process.execPath, '--enable-source-maps', programPath('worker/agent/main')];
    const log = { ZEROFLEET_LOG_LEVEL: process.env.ZF_TEST_LOG ?? 'silent' };
    const image = { command, env: { PATH: process.env.PATH, ZEROFLEET_THREADS_PER_RANK: '1', ...log } };
    const plane = await ControlPlane.start({ nodes, images: { [IMAGE]: image } });
    t.teardown(() => plane.stop());
    await plane.client.post('/api/v1/namespaces', { metadata: { name: NAMESPACE } });
    const config = { metadata: { name: 'zerofleet' }, data: cluster.env };
    await plane.client.post(`/api/v1/namespaces/${NAMESPACE}/configmaps`, config);
    const rights = join(projectRoot(), 'infra', 'kubernetes', 'base', 'autoscaler-rights.yaml');
    const admin = await plane.adminKubeconfig(NAMESPACE);
    await run(join(plane.bin, 'kubectl'), ['--kubeconfig', admin, 'apply', '-f', rights]);
    const kubeconfig = await plane.kubeconfig(ACCOUNT, await plane.tokenOf(NAMESPACE, ACCOUNT), NAMESPACE);
    const env = { ...cluster.env, KUBECONFIG: kubeconfig };
    const autoscaler = AutoscalerProcess.start(t, 'kubernetes', pools, env);
    return new KubernetesStack(cluster, plane, autoscaler);
  }

  /** Names of the pods. */
  async pods(): Promise<string[]> {
    const { items = [] } = await this.plane.client.get(`/api/v1/namespaces/${NAMESPACE}/pods`);
    return items.map(({ metadata }) => metadata.name);
  }

  /** Requests of the autoscaler, from the audit log. */
  async requests(): Promise<AuditEvent[]> {
    const user = `system:serviceaccount:${NAMESPACE}:${ACCOUNT}`;
    return (await this.plane.audit()).filter((event) => event.user.username === user);
  }

  /** Number of pods that there have been: the answer to a creation may have been lost. */
  created(): number {
    return this.plane.kubelets.seen.size;
  }
}
