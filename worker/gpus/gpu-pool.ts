import type { Logger } from '../../platform/logging/logging.js';
import type { WorkerGpu } from '../../state/index.js';
import type { MachineGpu } from './look-at-machine.js';

/** How long a GPU on which a rank failed is not used, when nothing else is found wrong with it. */
const QUARANTINE_MS = 10 * 60_000;

interface Entry {
  gpu: MachineGpu;
  taken: boolean;
  /** A rank failed on it: until when it is not used for that, and why. */
  suspicion: { until: number; why: string } | null;
}

export interface GpuPoolOptions {
  /** What was found at the start. */
  found: readonly MachineGpu[];
  log: Logger;
  /** The most ranks that may run at once; null: one for each GPU. */
  limit: number | null;
  now?: () => number;
}

/**
 * This worker's GPUs: each rank takes one to its end. One with a problem is given to nobody until the problem is gone, and
 * the worker has a slot less.
 */
export class GpuPool {
  /** The numerics of all GPUs that are used. */
  readonly numerics: string | null;

  private readonly entries: Entry[];
  private readonly watchers: (() => void)[] = [];
  private readonly fault_watchers: (() => void)[] = [];
  private readonly now: () => number;
  /** Problems by UUID, as they were told last. */
  private told: ReadonlyMap<string, string | null>;

  constructor(private readonly options: GpuPoolOptions) {
    this.now = options.now ?? (() => performance.now());
    this.numerics = mostFrequent(
      options.found.flatMap((gpu) => (gpu.problem === null ? [gpu.numerics] : [])),
    );
    this.entries = options.found.map((gpu) => ({
      gpu: { ...gpu, problem: gpu.problem ?? this.mismatch(gpu) },
      taken: false,
      suspicion: null,
    }));
    this.told = new Map(this.gpus.map(({ uuid, problem }) => [uuid, problem]));
  }

  /** Ranks that can run at once. */
  get slots(): number {
    const healthy = this.entries.filter((entry) => this.problemOf(entry) === null).length;
    return Math.min(healthy, this.options.limit ?? healthy);
  }

  /** All of them, as they are announced. */
  get gpus(): WorkerGpu[] {
    return this.entries.map((entry) => {
      const { uuid, name, memory_bytes, driver } = entry.gpu;
      return { uuid, name, memory_bytes, driver, problem: this.problemOf(entry) };
    });
  }

  /** Called whenever slots or problems may have changed. */
  onChange(watcher: () => void): void {
    this.watchers.push(watcher);
  }

  /** Called when a rank failed by a GPU's doing. */
  onFault(watcher: () => void): void {
    this.fault_watchers.push(watcher);
  }

  /** A healthy GPU that no rank has; null when there is none. */
  take(): WorkerGpu | null {
    const free = this.entries.find((entry) => !entry.taken && this.problemOf(entry) === null);
    if (!free) return null;
    free.taken = true;
    return free.gpu;
  }

  /** @param fault how the rank failed by the GPU's doing; null: it did not */
  release(uuid: string, fault: string | null): void {
    const entry = this.entries.find(({ gpu }) => gpu.uuid === uuid);
    if (!entry) return;
    entry.taken = false;
    if (fault === null) return;
    entry.suspicion = { until: this.now() + QUARANTINE_MS, why: `a rank failed on it: ${fault}` };
    this.changed();
    for (const watcher of this.fault_watchers) watcher();
  }

  /** Takes over what was found at a later look. One that is not found any more is lost; new ones count from the next start on. */
  observe(found: readonly MachineGpu[]): void {
    for (const entry of this.entries) {
      const now = found.find(({ uuid }) => uuid === entry.gpu.uuid);
      const problem = now
        ? (now.problem ?? this.mismatch(entry.gpu))
        : 'the driver does not list it any more';
      entry.gpu = { ...entry.gpu, problem };
      if (entry.suspicion && this.now() >= entry.suspicion.until) entry.suspicion = null;
    }
    this.changed();
  }

  private problemOf({ gpu, suspicion }: Entry): string | null {
    return gpu.problem ?? suspicion?.why ?? null;
  }

  /** Ranks of one job must not differ in a bit, so the GPUs of a worker are of one kind. */
  private mismatch({ numerics }: MachineGpu): string | null {
    if (numerics === this.numerics) return null;
    return `it computes as ${numerics}, and the others of this worker as ${this.numerics}: give it a worker of its own`;
  }

  /** Tells what is new. */
  private changed(): void {
    const before = this.told;
    this.told = new Map(this.gpus.map(({ uuid, problem }) => [uuid, problem]));
    const fresh = this.gpus.filter(({ uuid, problem }) => before.get(uuid) !== problem);
    if (fresh.length === 0) return;
    for (const gpu of fresh) {
      if (gpu.problem === null) this.options.log.info({ ...gpu }, 'GPU back in use');
      else this.options.log.error({ ...gpu }, 'GPU taken out');
    }
    for (const watcher of this.watchers) watcher();
  }
}

function mostFrequent(values: readonly (string | null)[]): string | null {
  const counts = new Map<string | null, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}
