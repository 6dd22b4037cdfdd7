/** Stand-in for the kubelets of made-up nodes: a pod's container is a process on this machine. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AdminClient, AdminError, type KubeObject } from './client.js';

/** Command and environment of an image. */
export interface TestImage {
  command: string[];
  env: NodeJS.ProcessEnv;
}

interface KubeletOptions {
  client: AdminClient;
  /** Directory of the pods' files. */
  dir: string;
  /** Images that exist, by name. */
  images: Readonly<Record<string, TestImage>>;
  /** Resources of each node. */
  capacity: Readonly<Record<string, string>>;
  /** Returns the zone of a node. */
  zoneOf(node: string): string;
  /** Environment of all processes. */
  env: NodeJS.ProcessEnv;
}

interface RunningPod {
  node: string;
  pod: KubeObject;
  child: ChildProcess | null;
  isEnding: boolean;
}

const HEARTBEAT_MS = 2_000;
const LOG_END_CHARACTERS = 2_048;
/** Label of nodes, which the API server of 1.35 and later copies to a pod that gets a node. */
const ZONE = 'topology.kubernetes.io/zone';

export class Kubelets {
  /** Uids of all pods that there have been. */
  readonly seen = new Set<string>();
  /** Names of pods that did not end within their grace period. */
  readonly overdue: string[] = [];
  private readonly nodes = new Set<string>();
  private readonly pods = new Map<string, RunningPod>();
  private readonly closing = new AbortController();
  private readonly loops: Promise<void>[] = [];

  constructor(private readonly options: KubeletOptions) {}

  start(): void {
    this.loops.push(this.heartbeats(), this.watch());
  }

  /** Registers a node, or takes a killed one into service again. */
  async startNode(name: string): Promise<void> {
    const { client } = this.options;
    const metadata = { name, labels: { 'kubernetes.io/hostname': name, [ZONE]: this.options.zoneOf(name) } };
    await client.post('/api/v1/nodes', { metadata }).catch(unless(409));
    this.nodes.add(name);
    await this.beat(name);
    const { items = [] } = await client.get(`/api/v1/pods?fieldSelector=spec.nodeName=${name}`);
    for (const pod of items) this.take(pod);
  }

  /** Ends all processes of a node and its heartbeats at once, as a power failure. */
  async killNode(name: string): Promise<void> {
    this.nodes.delete(name);
    for (const [uid, { node, child }] of this.pods) {
      if (node !== name) continue;
      this.pods.delete(uid);
      child?.kill('SIGKILL');
    }
  }

  /** Pods with a process, by name. */
  running(): string[] {
    return [...this.pods.values()].flatMap(({ pod, child }) => (isAlive(child) ? [pod.metadata.name] : []));
  }

  /** Ends the process of a pod at once, as the kernel does. */
  kill(name: string): void {
    for (const { pod, child } of this.pods.values()) if (pod.metadata.name === name) child?.kill('SIGKILL');
  }

  async close(): Promise<void> {
    this.closing.abort();
    for (const { child } of this.pods.values()) child?.kill('SIGKILL');
    await Promise.all(this.loops);
  }

  private async heartbeats(): Promise<void> {
    const { signal } = this.closing;
    while (!signal.aborted) {
      for (const name of this.nodes) await this.beat(name).catch(() => undefined);
      await sleep(HEARTBEAT_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  private async beat(name: string): Promise<void> {
    const time = new Date().toISOString();
    const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'ready' };
    const conditions = [{ ...ready, lastHeartbeatTime: time, lastTransitionTime: time }];
    await this.options.client.patch(`/api/v1/nodes/${name}/status`, {
      status: { capacity: this.options.capacity, allocatable: this.options.capacity, conditions },
    });
  }

  /** Follows the pods of all nodes. A server that is away is asked again; pods go on meanwhile. */
  private async watch(): Promise<void> {
    const { client } = this.options;
    const { signal } = this.closing;
    while (!signal.aborted) {
      try {
        const { metadata, items = [] } = await client.get('/api/v1/pods');
        const uids = new Set(items.map((pod) => pod.metadata.uid));
        for (const [uid, { pod }] of this.pods) if (!uids.has(uid)) this.gone(pod);
        for (const pod of items) this.take(pod);
        const path = `/api/v1/pods?watch=1&resourceVersion=${metadata.resourceVersion}`;
        await client.watch(path, signal, ({ type, object }) => {
          if (type === 'DELETED') this.gone(object);
          else if (type !== 'ERROR') this.take(object);
        });
      } catch {
        await sleep(500, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  private take(pod: KubeObject): void {
    const { uid, deletionTimestamp } = pod.metadata;
    this.seen.add(uid);
    const node = pod.spec?.nodeName;
    if (!node || !this.nodes.has(node)) return;
    const known = this.pods.get(uid);
    if (known) known.pod = pod;
    if (deletionTimestamp !== undefined) void this.end(pod, known);
    else if (!known && pod.status?.phase === 'Pending') void this.startPod(node, pod);
    else if (!known && pod.status?.phase === 'Running') void this.reportLost(pod);
  }

  /** A node that starts again has none of its containers. */
  private reportLost(pod: KubeObject): Promise<void> {
    const finishedAt = new Date().toISOString();
    const state = {
      exitCode: 137,
      reason: 'ContainerStatusUnknown',
      startedAt: pod.status?.startTime,
      finishedAt,
    };
    return this.report(pod, 'Failed', { terminated: state });
  }

  /** A pod whose object is gone has no process any more. */
  private gone(pod: KubeObject): void {
    const known = this.pods.get(pod.metadata.uid);
    this.pods.delete(pod.metadata.uid);
    known?.child?.kill('SIGKILL');
  }

  private async startPod(node: string, pod: KubeObject): Promise<void> {
    const container = pod.spec?.containers?.[0];
    const running: RunningPod = { node, pod, child: null, isEnding: false };
    this.pods.set(pod.metadata.uid, running);
    const image = this.options.images[container?.image ?? ''];
    if (!image) {
      await this.report(pod, 'Pending', {
        waiting: {
          reason: 'ErrImagePull',
          message: `rpc error: code = NotFound desc = failed to resolve reference "${container?.image}": not found`,
        },
      });
      return;
    }
    const dir = join(this.options.dir, pod.metadata.uid);
    mkdirSync(dir, { recursive: true });
    const log = join(dir, 'log');
    const [program = '', ...args] = container?.command ?? image.command;
    const env = {
      ...image.env,
      ...this.options.env,
      ZEROFLEET_DATA_DIR: join(dir, 'data'),
      ...(await this.environment(node, await this.labelled(node, pod))),
    };
    if (running.isEnding || this.closing.signal.aborted) return;
    const fd = openSync(log, 'a');
    const child = spawn(program, args, { cwd: dir, env, stdio: ['ignore', fd, fd] });
    running.child = child;
    const startedAt = new Date().toISOString();
    child.once(
      'exit',
      (code, signal) => void this.exited(running, code ?? (signal === 'SIGKILL' ? 137 : 143), startedAt, log),
    );
    await this.report(
      pod,
      'Running',
      { running: { startedAt } },
      { podIP: '127.0.0.1', hostIP: '127.0.0.1', startTime: startedAt },
    );
  }

  private async exited(
    { node, pod }: RunningPod,
    exitCode: number,
    startedAt: string,
    log: string,
  ): Promise<void> {
    // A node without power reports nothing.
    if (!this.nodes.has(node)) return;
    const message = readFileSync(log, 'utf8').slice(-LOG_END_CHARACTERS);
    const finishedAt = new Date().toISOString();
    const reason = exitCode === 0 ? 'Completed' : 'Error';
    const terminated = { exitCode, reason, message, startedAt, finishedAt };
    await this.report(pod, exitCode === 0 ? 'Succeeded' : 'Failed', { terminated });
    rmSync(join(this.options.dir, pod.metadata.uid, 'data'), { recursive: true, force: true });
    if (this.pods.get(pod.metadata.uid)?.pod.metadata.deletionTimestamp !== undefined)
      await this.removeObject(pod);
  }

  private async end(pod: KubeObject, known: RunningPod | undefined): Promise<void> {
    if (!known || !isAlive(known.child)) {
      if (known) known.isEnding = true;
      await this.removeObject(pod);
      return;
    }
    if (known.isEnding) return;
    known.isEnding = true;
    const { child } = known;
    child?.kill('SIGTERM');
    const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? 30) * 1000;
    await sleep(graceMs, undefined, { signal: this.closing.signal }).catch(() => undefined);
    if (!isAlive(child) || this.closing.signal.aborted) return;
    this.overdue.push(pod.metadata.name);
    child?.kill('SIGKILL');
  }

  private async removeObject({ metadata: { namespace, name, uid } }: KubeObject): Promise<void> {
    const options = { gracePeriodSeconds: 0, preconditions: { uid } };
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    await this.options.client.delete(path, options).catch(() => undefined);
  }

  /** Reports the state of a pod, until the server takes it. */
  private async report(pod: KubeObject, phase: string, state: object, more: object = {}): Promise<void> {
    const { namespace, name } = pod.metadata;
    const image = pod.spec?.containers?.[0]?.image;
    const status = { name: 'agent', image, imageID: '', ready: phase === 'Running', restartCount: 0, state };
    while (!this.closing.signal.aborted) {
      try {
        await this.options.client.patch(`/api/v1/namespaces/${namespace}/pods/${name}/status`, {
          metadata: { uid: pod.metadata.uid },
          status: { phase, containerStatuses: [status], ...more },
        });
        return;
      } catch (error) {
        if (error instanceof AdminError && (error.status === 404 || error.status === 409)) return;
        await sleep(500);
      }
    }
  }

  /** Gives a pod the label that newer API servers give it when it gets its node. */
  private labelled(node: string, { metadata: { namespace, name, uid } }: KubeObject): Promise<KubeObject> {
    const metadata = { uid, labels: { [ZONE]: this.options.zoneOf(node) } };
    return this.options.client.patch(`/api/v1/namespaces/${namespace}/pods/${name}`, { metadata });
  }

  private async environment(node: string, { metadata, spec }: KubeObject): Promise<Record<string, string>> {
    const { env = [], envFrom = [] } = spec?.containers?.[0] ?? {};
    const values: Record<string, string> = {};
    for (const { configMapRef, secretRef } of envFrom) {
      const [kind, name] = configMapRef ? ['configmaps', configMapRef.name] : ['secrets', secretRef?.name];
      const path = `/api/v1/namespaces/${metadata.namespace}/${kind}/${name}`;
      const { data = {} } = await this.options.client.get(path);
      for (const [key, value] of Object.entries(data))
        values[key] = configMapRef ? value : Buffer.from(value, 'base64').toString();
    }
    const fields: Record<string, string> = {
      'metadata.name': metadata.name,
      'metadata.uid': metadata.uid,
      'status.podIP': '127.0.0.1',
      'spec.nodeName': node,
      [`metadata.labels['${ZONE}']`]: metadata.labels?.[ZONE] ?? '',
    };
    for (const { name, value = '', valueFrom } of env)
      values[name] = valueFrom
        ? (fields[valueFrom.fieldRef.fieldPath] ?? '')
        : value.replace(/\$\((\w+)\)/g, (whole, variable) => values[variable] ?? whole);
    return values;
  }
}

function isAlive(child: ChildProcess | null): boolean {
  return child !== null && child.exitCode === null && child.signalCode === null;
}

const unless = (status: number) => (error: unknown) => {
  if (!(error instanceof AdminError && error.status === status)) throw error;
};
