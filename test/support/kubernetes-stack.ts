/**
 * A stack whose agents are pods of a real control plane, requested by an autoscaler with the rights of the manifests.
 */
import { programPath } from '../../platform/process/programs.js';
import type { KubeObject } from '../../platform/testing/kubernetes/client.js';
import {
  AUTOSCALER,
  type AuditEvent,
  ControlPlane,
} from '../../platform/testing/kubernetes/control-plane.js';
import { AutoscalerProcess } from './autoscaler-process.js';
import { Cluster } from './cluster.js';
import type { Owner } from './stack.js';

export const NAMESPACE = 'training';
export const IMAGE = 'worker:1';

interface KubernetesStackOptions {
  nodes: number;
  /** ZEROFLEET_AUTOSCALE_POOLS */
  pools: readonly object[];
}

/** Pod of one agent, which has a node of its own. */
export const POD = {
  image: IMAGE,
  resources: { cpu: '3', memory: '1Gi' },
  config_maps: ['zerofleet'],
  drain_seconds: 30,
};

interface RunningPod {
  name: string;
  uid: string;
  node: string;
  /** Unix time in ms. */
  started_at: number;
}

export class KubernetesStack {
  private constructor(
    readonly cluster: Cluster,
    readonly plane: ControlPlane,
    readonly autoscaler: AutoscalerProcess,
    /** File with the autoscaler's identity. */
    readonly kubeconfig: string,
  ) {}

  /** A stack with an autoscaler and without agents; it ends with the test. */
  static async start(t: Owner, { nodes, pools }: KubernetesStackOptions): Promise<KubernetesStack> {
    const cluster = await Cluster.start(t);
    const command = [process.execPath, '--enable-source-maps', programPath('worker/agent/main')];
    const log = { ZEROFLEET_LOG_LEVEL: process.env.ZF_TEST_LOG ?? 'silent' };
    const image = { command, env: { PATH: process.env.PATH, ZEROFLEET_THREADS_PER_RANK: '1', ...log } };
    const plane = await ControlPlane.start({ nodes, images: { [IMAGE]: image } });
    t.teardown(() => plane.stop());
    await plane.client.post('/api/v1/namespaces', { metadata: { name: NAMESPACE } });
    const config = { metadata: { name: 'zerofleet' }, data: cluster.env };
    await plane.client.post(`/api/v1/namespaces/${NAMESPACE}/configmaps`, config);
    const kubeconfig = await plane.autoscalerKubeconfig(NAMESPACE);
    const env = { ...cluster.env, KUBECONFIG: kubeconfig };
    const autoscaler = AutoscalerProcess.start(t, 'kubernetes', pools, env);
    return new KubernetesStack(cluster, plane, autoscaler, kubeconfig);
  }

  /** Names of the pods that have not ended: one that failed at its start is kept for its log. */
  async pods(): Promise<string[]> {
    return (await this.live()).map(({ metadata }) => metadata.name);
  }

  /** Pods with an agent that are not being deleted. */
  async running(): Promise<RunningPod[]> {
    return (await this.live()).flatMap(({ metadata: { name, uid, deletionTimestamp }, spec, status }) =>
      status?.phase === 'Running' && deletionTimestamp === undefined
        ? [{ name, uid, node: spec?.nodeName ?? '', started_at: Date.parse(status.startTime ?? '') }]
        : [],
    );
  }

  /** Number of pods that have not ended and are not being deleted. */
  async staying(): Promise<number> {
    return (await this.live()).filter(({ metadata }) => metadata.deletionTimestamp === undefined).length;
  }

  private async live(): Promise<KubeObject[]> {
    const { items = [] } = await this.plane.client.get(`/api/v1/namespaces/${NAMESPACE}/pods`);
    return items.filter(({ status }) => status?.phase !== 'Failed' && status?.phase !== 'Succeeded');
  }

  /** Requests of the autoscaler, from the audit log. */
  async requests(): Promise<AuditEvent[]> {
    const user = `system:serviceaccount:${NAMESPACE}:${AUTOSCALER}`;
    return (await this.plane.audit()).filter((event) => event.user.username === user);
  }

  /** Number of pods that there have been: the answer to a creation may have been lost. */
  created(): number {
    return this.plane.kubelets.seen.size;
  }

  /** Number of creations that the server granted, from the audit log. */
  async granted(): Promise<number> {
    const isGranted = ({ verb, responseStatus }: AuditEvent) =>
      verb === 'create' && responseStatus?.code === 201;
    return (await this.requests()).filter(isGranted).length;
  }
}
