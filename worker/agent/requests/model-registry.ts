import { ZerofleetError } from '../../../contracts/index.js';
import { GPU_RESERVE_BYTES } from '../../../job-document/index.js';
import { isGpuFault } from '../../shared/gpu-faults.js';
import { orAbort } from '../../shared/or-abort.js';
import { type Room, requireMemory } from '../../tasks/serve/memory.js';
import type { GpuPool } from '../gpus/gpu-pool.js';
import type { TaskOptions } from '../supervisor/task-runner.js';
import { ModelProcess } from './model-process.js';
import type { Placement } from './placement.js';

/** A GPU for models, with the memory that models may take. */
export interface ModelGpu extends Room {
  uuid: string;
}

/** Runs the process that serves a model until the signal is aborted. @param gpu null: on the CPU */
type RunModel = (
  placement: Placement,
  gpu: ModelGpu | null,
  signal: AbortSignal,
  serving: NonNullable<TaskOptions['serving']>,
) => Promise<never>;

interface ModelRegistryOptions {
  run: RunModel;
  /** GPUs for models; null: models run on the CPU. */
  gpus: GpuPool | null;
  /** Time without a message after which a process counts as hanging. */
  silence_ms: number;
  /** Called when `cpu_bytes` has changed. */
  onChange(): void;
}

interface Entry {
  model: ModelProcess;
  /** GPU of the model; null on the CPU, and until a GPU was chosen. */
  gpu: Pick<ModelGpu, 'uuid' | 'total_bytes'> | null;
}

/**
 * The models that this worker serves, each in a process. They load one after the other, so that each sees the memory
 * that the others leave.
 */
export class ModelRegistry {
  private readonly entries = new Map<string, Entry>();
  /** Resolves when no model is loading. */
  private loaded: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: ModelRegistryOptions) {}

  /** Main memory that the models take. */
  get cpuBytes(): number {
    return this.bytesOn(null);
  }

  /** Returns the process for a placement, and starts it if necessary. Its model may still be loading. */
  find(placement: Placement): ModelProcess {
    const { process_key: key } = placement;
    const existing = this.entries.get(key);
    if (existing !== undefined) return existing.model;
    const { onChange, silence_ms } = this.options;
    const previousLoad = this.loaded;
    const entry: Entry = {
      gpu: null,
      model: new ModelProcess({
        start: async (signal, serving) => {
          await orAbort(previousLoad, signal);
          return this.load(entry, placement, signal, serving);
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
   * Frees memory for `model` or for another adapter of it: unloads the least recently used adapter of `model`, or else
   * the least recently used of the other models.
   * @returns false if everything is in use
   */
  async makeRoom(model: ModelProcess): Promise<boolean> {
    if (await model.releaseVariant()) return true;
    const own = [...this.entries.values()].find((entry) => entry.model === model);
    // A model that is not loaded yet may take another GPU.
    const isUseful = ({ gpu }: Entry) => !model.isLoaded || gpu?.uuid === own?.gpu?.uuid;
    const idle = [...this.entries.values()].filter(
      (entry) => entry.model !== model && entry.model.isLoaded && entry.model.isIdle && isUseful(entry),
    );
    const [oldest] = idle.sort((a, b) => a.model.usedAt - b.model.usedAt);
    await oldest?.model.close('another model needs its memory');
    return oldest !== undefined;
  }

  /** Unloads the models that were unused for `ms`. */
  unloadUnused(ms: number): void {
    for (const { model } of this.entries.values())
      if (model.isLoaded && model.isIdle && performance.now() - model.usedAt > ms)
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
    serving: NonNullable<TaskOptions['serving']>,
  ): Promise<never> {
    const { run, gpus } = this.options;
    if (gpus === null) return run(placement, null, signal, serving);
    const gpu = this.gpuWithMostMemory(gpus);
    entry.gpu = gpu;
    try {
      return await run(placement, gpu, signal, serving);
    } catch (error) {
      if (error instanceof ZerofleetError && isGpuFault(error.code)) gpus.release(gpu.uuid, error.message);
      throw error;
    }
  }

  /** @throws ZerofleetError `device_unavailable` */
  private gpuWithMostMemory(gpus: GpuPool): ModelGpu {
    const healthy = gpus.gpus.filter(({ problem }) => problem === null);
    const [best] = healthy
      .map(({ uuid, memory_bytes }) => {
        const totalBytes = memory_bytes - GPU_RESERVE_BYTES;
        return { uuid, total_bytes: totalBytes, free_bytes: totalBytes - this.bytesOn(uuid) };
      })
      .sort((a, b) => b.free_bytes - a.free_bytes);
    if (best !== undefined) return best;
    const problems = gpus.gpus.map(({ uuid, problem }) => `${uuid}: ${problem}`).join('; ');
    throw new ZerofleetError('device_unavailable', `no GPU of this worker can answer: ${problems}`);
  }

  /**
   * On a GPU, free memory is what this worker has not assigned. Main memory is shared with other programs, so it is
   * measured.
   */
  private admit({ gpu }: Entry, bytes: number): void {
    if (gpu === null) {
      const unallocatedBytes = this.modelsOn(null).reduce((sum, { loadingBytes }) => sum + loadingBytes, 0);
      requireMemory(bytes + unallocatedBytes, null);
    } else {
      const { uuid, total_bytes } = gpu;
      requireMemory(bytes, { free_bytes: total_bytes - this.bytesOn(uuid), total_bytes });
    }
  }

  private modelsOn(gpu: string | null): ModelProcess[] {
    const entries = [...this.entries.values()].filter((entry) => (entry.gpu?.uuid ?? null) === gpu);
    return entries.map(({ model }) => model);
  }

  private bytesOn(gpu: string | null): number {
    return this.modelsOn(gpu).reduce((sum, { bytes }) => sum + bytes, 0);
  }
}
