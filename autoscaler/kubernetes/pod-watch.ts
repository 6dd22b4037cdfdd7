import type { Logger } from '../../platform/logging/logging.js';
import { causeOf, type EndCause } from './causes.js';
import { KubernetesError } from './errors.js';
import { type Machine, machineOfPod } from './pod.js';
import type { PodsApi } from './pods-api.js';

interface PodWatchOptions {
  api: Pick<PodsApi, 'list' | 'watch' | 'create' | 'remove'>;
  log: Logger;
  /** Called once for each pod that ended without a request. */
  onEnded(machine: Machine, cause: EndCause): void;
}

/** Deleted pods that are remembered: an answer of the server about one may come later. */
const MAX_GONE = 1_000;

/**
 * The pods of the autoscaler as the API server last described them: a list, then a watch from its version. A watch that
 * the server ends continues from the last version that it named. After a failure, or when the server has forgotten that
 * version (410), the next `refresh` lists anew, so there is at most one list for each reconciliation.
 */
export class PodWatch {
  private readonly known = new Map<string, Machine>();
  /** Uids of pods that were deleted by this object, and of those that have ended. */
  private readonly removed = new Set<string>();
  private readonly ended = new Set<string>();
  private readonly gone = new Set<string>();
  private watching: AbortController | null = null;
  /** The list that is being read; all callers wait for the same one. */
  private refreshing: Promise<void> | null = null;

  constructor(private readonly options: PodWatchOptions) {}

  /** Returns all pods. Those that this object deletes are leaving. */
  list(): Machine[] {
    return [...this.known.values()].map((machine) =>
      machine.phase !== 'ended' && this.removed.has(machine.uid) ? { ...machine, phase: 'leaving' } : machine,
    );
  }

  /** Makes sure that the list is one of now. @throws KubernetesError */
  refresh(): Promise<void> {
    this.refreshing ??= this.listAnew().finally(() => {
      this.refreshing = null;
    });
    return this.refreshing;
  }

  /** Creates a pod unless there is one of its name already. @throws KubernetesError */
  async create(pod: object): Promise<void> {
    try {
      const machine = machineOfPod(await this.options.api.create(pod));
      if (machine && !this.known.has(machine.uid) && !this.gone.has(machine.uid)) this.update(machine);
    } catch (error) {
      if (!(error instanceof KubernetesError && error.status === 409)) throw error;
      // Another autoscaler has created it, or this one without having got the answer.
      this.close();
      await this.refresh();
    }
  }

  /**
   * Deletes a pod, once.
   * @param only `unchanged`: not if it has changed meanwhile, for example has found a node
   */
  async remove({ uid, name, pod }: Machine, only: 'always' | 'unchanged' = 'always'): Promise<void> {
    if (this.removed.has(uid)) return;
    const version = only === 'unchanged' ? pod.metadata.resourceVersion : undefined;
    this.removed.add(uid);
    try {
      if (!(await this.options.api.remove(name, uid, version)) && only === 'unchanged')
        this.removed.delete(uid);
    } catch (error) {
      this.removed.delete(uid);
      throw error;
    }
  }

  /** Ends the watch; the next `refresh` begins a new one. */
  close(): void {
    this.watching?.abort();
    this.watching = null;
  }

  private async listAnew(): Promise<void> {
    if (this.watching) return;
    // The list may lack pods that are created meanwhile.
    const before = this.list();
    const { items, resource_version } = await this.options.api.list();
    const machines = items.flatMap((item) => machineOfPod(item) ?? []);
    const uids = new Set(machines.map(({ uid }) => uid));
    for (const machine of before) if (!uids.has(machine.uid)) this.forget(machine);
    for (const machine of machines) this.update(machine);
    const watching = new AbortController();
    this.watching = watching;
    void this.watch(resource_version, watching);
  }

  private async watch(version: string, watching: AbortController): Promise<void> {
    const { signal } = watching;
    let from = version;
    try {
      let before: string;
      do {
        before = from;
        from = await this.follow(from, signal);
        // A server that ends each watch at once would be asked without a pause.
      } while (from !== before && !signal.aborted);
    } catch (error) {
      if (!signal.aborted)
        this.options.log.info({ err: error }, 'the watch of pods ended; they are listed anew');
    }
    if (this.watching === watching) this.watching = null;
  }

  /** Takes the changes since a version until the server ends the watch. Returns the last version. */
  private async follow(version: string, signal: AbortSignal): Promise<string> {
    let last = version;
    for await (const { type, object, resource_version } of this.options.api.watch(version, signal)) {
      if (signal.aborted) return last;
      last = resource_version || last;
      const machine = type === 'BOOKMARK' ? null : machineOfPod(object);
      if (machine && type === 'DELETED') this.forget(machine);
      else if (machine) this.update(machine);
    }
    return last;
  }

  private update(machine: Machine): void {
    this.known.set(machine.uid, machine);
    if (machine.phase === 'ended') this.report(machine);
  }

  private forget(machine: Machine): void {
    if (!this.known.delete(machine.uid)) return;
    this.report(machine);
    this.removed.delete(machine.uid);
    this.ended.delete(machine.uid);
    this.gone.add(machine.uid);
    const [oldest] = this.gone;
    if (this.gone.size > MAX_GONE && oldest !== undefined) this.gone.delete(oldest);
  }

  private report(machine: Machine): void {
    if (this.removed.has(machine.uid) || this.ended.has(machine.uid)) return;
    this.ended.add(machine.uid);
    this.options.onEnded(machine, causeOf(machine));
  }
}
