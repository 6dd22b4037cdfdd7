import { ZerofleetError } from '../../contracts/index.js';
import { GPU_RESERVE_BYTES } from '../../job-document/index.js';
import { isGpuFault } from '../shared/gpu-faults.js';
import { orAbort } from '../shared/or-abort.js';
import { type Room, requireMemory } from '../tasks/serve/memory.js';
import type { GpuPool } from './gpus/gpu-pool.js';
import { HostedModel } from './hosted-model.js';
import type { Placement } from './placement.js';
import type { TaskOptions } from './supervisor/task-runner.js';

/** A GPU that answers, and the bytes of it that a model may take. */
export interface HostGpu extends Room {
  uuid: string;
}

/** Loads a model and answers until the signal is aborted. @param gpu null: on the CPU */
type RunHost = (
  placement: Placement,
  gpu: HostGpu | null,
  signal: AbortSignal,
  conversation: NonNullable<TaskOptions['host']>,
) => Promise<never>;

export interface ModelHostsOptions {
  run: RunHost;
  /** GPUs that answer; null: the CPU does. */
  gpus: GpuPool | null;
  /** Time without a message after which a host counts as hanging. */
  silence_ms: number;
  /** Called when `cpu_bytes` has changed. */
  onChange(): void;
}

interface Entry {
  model: HostedModel;
  /** Its GPU; null on the CPU, and before it is known. */
  gpu: Pick<HostGpu, 'uuid' | 'total_bytes'> | null;
}

/** The models that this worker answers with. They are loaded one after the other: each sees the memory that the others leave. */
export class ModelHosts {
  private readonly entries = new Map<string, Entry>();
  /** Resolves when no model is being loaded. */
  private loaded: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: ModelHostsOptions) {}

  /** Memory of the machine that the models take. */
  get cpu_bytes(): number {
    return this.bytesOn(null);
  }

  /** Returns the host for a placement, which may still be loading. */
  find(placement: Placement): HostedModel {
    const { host_key: key } = placement;
    const known = this.entries.get(key);
    if (known !== undefined) return known.model;
    const { onChange, silence_ms } = this.options;
    const before = this.loaded;
    const entry: Entry = {
      gpu: null,
      model: new HostedModel({
        start: async (signal, conversation) => {
          await orAbort(before, signal);
          return this.load(entry, placement, signal, conversation);
        },
        silence_ms,
        admit: (bytes) => this.admit(entry, bytes),
        onChange,
      }),
    };
    this.entries.set(key, entry);
    this.loaded = entry.model.loaded.catch(() => undefined);
    void entry.model.ended.then(() => {
      if (this.entries.get(key) === entry) this.entries.delete(key);
      onChange();
    });
    return entry.model;
  }

  /**
   * Forgets the adapter of `wanting` that was not used for the longest time, or unloads such a model, so that `wanting` or another adapter
   * of it has the memory.
   * @returns false if all others are in use
   */
  async makeRoom(wanting: HostedModel): Promise<boolean> {
    if (await wanting.releaseVariant()) return true;
    const of = [...this.entries.values()].find(({ model }) => model === wanting);
    // A model that is not loaded yet may take another GPU.
    const helps = ({ gpu }: Entry) => !wanting.is_loaded || gpu?.uuid === of?.gpu?.uuid;
    const idle = [...this.entries.values()].filter(
      (entry) => entry.model !== wanting && entry.model.is_loaded && entry.model.is_idle && helps(entry),
    );
    const [oldest] = idle.sort((a, b) => a.model.used_at - b.model.used_at);
    await oldest?.model.close('another model needs its memory');
    return oldest !== undefined;
  }

  /** Unloads models that were not used for `ms`. */
  unloadUnused(ms: number): void {
    for (const { model } of this.entries.values())
      if (model.is_loaded && model.is_idle && performance.now() - model.used_at > ms)
        void model.close('the model was not used');
  }

  async close(): Promise<void> {
    await Promise.all(
      [...this.entries.values()].map(({ model }) => model.close('the worker is shutting down')),
    );
  }

  private async load(
    entry: Entry,
    placement: Placement,
    signal: AbortSignal,
    conversation: NonNullable<TaskOptions['host']>,
  ): Promise<never> {
    const { run, gpus } = this.options;
    if (gpus === null) return run(placement, null, signal, conversation);
    const gpu = this.freest(gpus);
    entry.gpu = gpu;
    try {
      return await run(placement, gpu, signal, conversation);
    } catch (error) {
      if (error instanceof ZerofleetError && isGpuFault(error.code)) gpus.release(gpu.uuid, error.message);
      throw error;
    }
  }

  /** @throws ZerofleetError `device_unavailable` */
  private freest(gpus: GpuPool): HostGpu {
    const healthy = gpus.gpus.filter(({ problem }) => problem === null);
    const [most] = healthy
      .map(({ uuid, memory_bytes }) => {
        const total_bytes = memory_bytes - GPU_RESERVE_BYTES;
        return { uuid, total_bytes, free_bytes: total_bytes - this.bytesOn(uuid) };
      })
      .sort((a, b) => b.free_bytes - a.free_bytes);
    if (most !== undefined) return most;
    const problems = gpus.gpus.map(({ uuid, problem }) => `${uuid}: ${problem}`).join('; ');
    throw new ZerofleetError('device_unavailable', `no GPU of this worker can answer: ${problems}`);
  }

  /** Memory of a GPU is what this worker has not given away; that of the machine is taken by others, too. */
  private admit({ gpu }: Entry, bytes: number): void {
    if (gpu === null) {
      const unwritten = this.modelsOn(null).reduce((sum, { loading_bytes }) => sum + loading_bytes, 0);
      requireMemory(bytes + unwritten, null);
    } else {
      const { uuid, total_bytes } = gpu;
      requireMemory(bytes, { free_bytes: total_bytes - this.bytesOn(uuid), total_bytes });
    }
  }

  private modelsOn(gpu: string | null): HostedModel[] {
    const on = [...this.entries.values()].filter((entry) => (entry.gpu?.uuid ?? null) === gpu);
    return on.map(({ model }) => model);
  }

  private bytesOn(gpu: string | null): number {
    return this.modelsOn(gpu).reduce((sum, { bytes }) => sum + bytes, 0);
  }
}
