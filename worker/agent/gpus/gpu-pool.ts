import type { Logger } from '../../../platform/logging/logging.js';
import type { WorkerGpu } from '../../../state/index.js';
import type { MachineGpu } from '../../tasks/inspect-machine.js';

/** Time for which a GPU is not used after a rank failed on it, if inspections find no problem. */
const QUARANTINE_MS = 10 * 60_000;

interface Entry {
  gpu: MachineGpu;
  in_use: boolean;
  /** End and reason of a quarantine after a rank failed on the GPU. */
  quarantine: { until: number; reason: string } | null;
}

interface GpuPoolOptions {
  /** GPUs at the start. */
  found: readonly MachineGpu[];
  log: Logger;
  /** Maximum number of ranks at a time; null: one for each GPU. */
  limit: number | null;
  now?: () => number;
}

/**
 * GPUs of this worker; each rank takes one until it ends. An unhealthy GPU is not used until its problem is gone, and
 * the worker has one slot less.
 */
export class GpuPool {
  /** Numerics fingerprint of all GPUs that are used. */
  readonly numerics: string | null;

  private readonly entries: Entry[];
  private readonly watchers: (() => void)[] = [];
  private readonly faultWatchers: (() => void)[] = [];
  private readonly now: () => number;
  /** Problems by UUID at the last notification. */
  private notified: ReadonlyMap<string, string | null>;

  constructor(private readonly options: GpuPoolOptions) {
    this.now = options.now ?? (() => performance.now());
    this.numerics = mostFrequent(
      options.found.flatMap((gpu) => (gpu.problem === null ? [gpu.numerics] : [])),
    );
    this.entries = options.found.map((gpu) => ({
      gpu: { ...gpu, problem: gpu.problem ?? this.mismatch(gpu) },
      in_use: false,
      quarantine: null,
    }));
    this.notified = new Map(this.gpus.map(({ uuid, problem }) => [uuid, problem]));
  }

  /** Number of ranks that can run at a time. */
  get slots(): number {
    const healthy = this.entries.filter((entry) => this.problemOf(entry) === null).length;
    return Math.min(healthy, this.options.limit ?? healthy);
  }

  /** All GPUs, as they are announced. */
  get gpus(): WorkerGpu[] {
    return this.entries.map((entry) => {
      const { uuid, name, memory_bytes, driver } = entry.gpu;
      return { uuid, name, memory_bytes, driver, problem: this.problemOf(entry) };
    });
  }

  /** Calls the watcher whenever slots or problems may have changed. */
  onChange(watcher: () => void): void {
    this.watchers.push(watcher);
  }

  /** Calls the watcher when a rank failed because of its GPU. */
  onFault(watcher: () => void): void {
    this.faultWatchers.push(watcher);
  }

  /** Takes a healthy GPU without a rank; null when there is none. */
  take(): WorkerGpu | null {
    const free = this.entries.find((entry) => !entry.in_use && this.problemOf(entry) === null);
    if (!free) return null;
    free.in_use = true;
    return free.gpu;
  }

  /** Releases a GPU. @param fault the GPU's fault that failed the rank, or null */
  release(uuid: string, fault: string | null): void {
    const entry = this.entries.find(({ gpu }) => gpu.uuid === uuid);
    if (!entry) return;
    entry.in_use = false;
    if (fault === null) return;
    entry.quarantine = { until: this.now() + QUARANTINE_MS, reason: `a rank failed on it: ${fault}` };
    this.changed();
    for (const watcher of this.faultWatchers) watcher();
  }

  /**
   * Applies the results of an inspection. A GPU that is not found any more is lost; new ones are used after the next
   * start.
   */
  observe(found: readonly MachineGpu[]): void {
    for (const entry of this.entries) {
      const now = found.find(({ uuid }) => uuid === entry.gpu.uuid);
      const problem = now
        ? (now.problem ?? this.mismatch(entry.gpu))
        : 'the driver does not list it any more';
      entry.gpu = { ...entry.gpu, problem };
      if (entry.quarantine && this.now() >= entry.quarantine.until) entry.quarantine = null;
    }
    this.changed();
  }

  private problemOf({ gpu, quarantine }: Entry): string | null {
    return gpu.problem ?? quarantine?.reason ?? null;
  }

  /**
   * Returns a problem if the GPU's numerics differ: ranks of one job must compute the same bits, so the GPUs of a
   * worker are of one kind.
   */
  private mismatch({ numerics }: MachineGpu): string | null {
    if (numerics === this.numerics) return null;
    return `it computes as ${numerics}, and the other GPUs of this worker as ${this.numerics}: use a separate worker for it`;
  }

  /** Logs and notifies changed problems. */
  private changed(): void {
    const before = this.notified;
    this.notified = new Map(this.gpus.map(({ uuid, problem }) => [uuid, problem]));
    const changed = this.gpus.filter(({ uuid, problem }) => before.get(uuid) !== problem);
    if (changed.length === 0) return;
    for (const gpu of changed) {
      if (gpu.problem === null) this.options.log.info({ ...gpu }, 'GPU healthy again');
      else this.options.log.error({ ...gpu }, 'GPU unhealthy');
    }
    for (const watcher of this.watchers) watcher();
  }
}

function mostFrequent(values: readonly (string | null)[]): string | null {
  const counts = new Map<string | null, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}
