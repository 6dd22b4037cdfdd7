/** Stand-in for the API server of Kubernetes: the pods of one namespace in memory, with versions and watches. */
import { setTimeout as sleep } from 'node:timers/promises';
import { KubernetesError } from '../kubernetes/errors.js';
import type { KubernetesCapacityOptions } from '../kubernetes/kubernetes-capacity.js';
import type { PodEvent } from '../kubernetes/pods-api.js';

type Api = KubernetesCapacityOptions['api'];

interface StoredPod {
  metadata: {
    name: string;
    uid: string;
    resourceVersion: string;
    deletionTimestamp?: string;
    annotations?: object;
  };
  spec: { nodeName?: string };
  status: Record<string, unknown>;
}

export class KubernetesStandIn implements Api {
  readonly pods = new Map<string, StoredPod>();
  readonly calls: string[] = [];
  /** Answer to creations and lists; null: they succeed. */
  refuses: KubernetesError | null = null;
  /** True: the answer to a creation is lost. */
  losesAnswers = false;
  private readonly history: (PodEvent & { version: number })[] = [];
  /** Versions up to this one are forgotten. */
  private compacted = 0;
  private version = 1;
  private watches = new AbortController();

  constructor(private readonly clock: () => number) {}

  close(): void {}

  async list() {
    this.calls.push('list');
    if (this.refuses?.status === 0) throw this.refuses;
    return {
      items: [...this.pods.values()].map((pod) => structuredClone(pod)),
      resource_version: String(this.version),
    };
  }

  async *watch(version: string, signal: AbortSignal): AsyncGenerator<PodEvent, void> {
    this.calls.push('watch');
    if (Number(version) < this.compacted) throw new KubernetesError(410, 'too old resource version');
    const { signal: ended } = this.watches;
    let next = this.history.findIndex((event) => event.version > Number(version));
    if (next < 0) next = this.history.length;
    while (!signal.aborted) {
      const event = this.history[next];
      if (event) {
        next += 1;
        yield event;
      } else if (ended.aborted) break;
      else await sleep(1);
    }
    if (ended.reason instanceof KubernetesError) throw ended.reason;
  }

  async create(pod: object): Promise<unknown> {
    const { metadata, spec } = pod as Pick<StoredPod, 'metadata' | 'spec'>;
    this.calls.push(`create ${metadata.name}`);
    if (this.refuses) throw this.refuses;
    if (this.pods.has(metadata.name))
      throw new KubernetesError(409, `pods "${metadata.name}" already exists`);
    const uid = `uid-${this.calls.length}`;
    this.store('ADDED', {
      metadata: { ...metadata, uid, resourceVersion: '' },
      spec: { ...spec },
      status: { phase: 'Pending' },
    });
    if (this.losesAnswers) throw new KubernetesError(0, 'no answer');
    return structuredClone(this.pods.get(metadata.name));
  }

  async remove(name: string, uid: string, version?: string): Promise<boolean> {
    this.calls.push(`delete ${name}`);
    const pod = this.pods.get(name);
    if (pod?.metadata.uid !== uid || (version !== undefined && version !== pod.metadata.resourceVersion))
      return false;
    if (pod.spec.nodeName && !['Succeeded', 'Failed'].includes(String(pod.status.phase)))
      this.change(name, {}, { deletionTimestamp: new Date(this.clock()).toISOString() });
    else this.delete(name);
    return true;
  }

  /** Gives pods a node, and starts their agents. */
  start(...names: string[]): void {
    for (const name of names) {
      const pod = this.pods.get(name);
      if (pod) pod.spec.nodeName = 'n1';
      const running = { startedAt: new Date(this.clock()).toISOString() };
      this.change(name, { phase: 'Running', containerStatuses: [{ state: { running } }] });
    }
  }

  /** Ends the agent of a pod. */
  end(name: string, exitCode: number, message = ''): void {
    const finishedAt = new Date(this.clock()).toISOString();
    const terminated = {
      exitCode,
      reason: exitCode === 0 ? 'Completed' : 'Error',
      message,
      startedAt: finishedAt,
      finishedAt,
    };
    this.change(name, {
      phase: exitCode === 0 ? 'Succeeded' : 'Failed',
      containerStatuses: [{ state: { terminated } }],
    });
  }

  change(name: string, status: object, metadata: object = {}): void {
    const pod = this.pods.get(name);
    if (!pod) throw new Error(`no pod ${name}`);
    this.store('MODIFIED', {
      ...pod,
      metadata: { ...pod.metadata, ...metadata },
      status: { ...pod.status, ...status },
    });
  }

  delete(name: string): void {
    const pod = this.pods.get(name);
    if (!pod) throw new Error(`no pod ${name}`);
    this.pods.delete(name);
    this.record('DELETED', pod);
  }

  /** Ends all watches. @param error as a failure of the connection does, or 410 */
  endWatches(error?: KubernetesError): void {
    this.watches.abort(error);
    this.watches = new AbortController();
  }

  /** Forgets all versions before now. */
  compact(): void {
    this.version += 1;
    this.compacted = this.version;
  }

  private store(type: 'ADDED' | 'MODIFIED', pod: StoredPod): void {
    this.pods.set(pod.metadata.name, pod);
    this.record(type, pod);
  }

  private record(type: PodEvent['type'], pod: StoredPod): void {
    this.version += 1;
    pod.metadata.resourceVersion = String(this.version);
    this.history.push({
      type,
      object: structuredClone(pod),
      resource_version: String(this.version),
      version: this.version,
    });
  }
}
