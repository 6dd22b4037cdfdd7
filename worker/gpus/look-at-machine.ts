import type { WorkerGpu } from '../../state/index.js';
import type { NativeCore } from '../native/adapter.js';

/** A GPU that a worker may use, or could if it had no problem. */
export interface MachineGpu extends WorkerGpu {
  /** The scope of bit-exactness of a rank on it; null where CUDA was not asked, or does not show it. */
  numerics: string | null;
}

/** What a machine can compute with. */
export interface MachineReport {
  /** Whether the native core was built with CUDA. */
  has_cuda: boolean;
  /** Those that CUDA_VISIBLE_DEVICES leaves, with and without problems. */
  gpus: MachineGpu[];
  /** Devices that CUDA shows, whatever the driver's library says; null: CUDA was not asked. */
  num_cuda_devices: number | null;
  /** The scope of bit-exactness of a rank on the CPU. */
  cpu_numerics: string;
}

export interface LookOptions {
  /** Whether to ask for GPUs at all. */
  gpus: boolean;
  /** Whether to ask CUDA as well: it says which kind of numerics they have. Only its own process should do so. */
  cuda: boolean;
}

/** Looks at this machine. @throws NativeError `device_unavailable` where a driver is there and does not work */
export function lookAtMachine(core: NativeCore, { gpus, cuda }: LookOptions): MachineReport {
  const devices = cuda ? core.cudaDevices() : null;
  const numerics = new Map(devices?.map(({ uuid, fingerprint }) => [uuid, fingerprint]));
  const found = gpus ? visible(core.gpus(), process.env.CUDA_VISIBLE_DEVICES) : [];
  return {
    has_cuda: devices !== null,
    num_cuda_devices: devices?.length ?? null,
    cpu_numerics: core.fingerprint('cpu'),
    gpus: found.map(({ index, uuid, name, memory_bytes, driver, problem }) => ({
      // One that can't say its own name is at least told apart from the others.
      uuid: uuid ?? `index-${index}`,
      name,
      memory_bytes,
      driver,
      numerics: numerics.get(uuid ?? '') ?? null,
      problem: problem ?? (devices && !numerics.has(uuid ?? '') ? 'CUDA does not show it' : null),
    })),
  };
}

/**
 * Those of the list that CUDA would show with this value of CUDA_VISIBLE_DEVICES: UUIDs, or their beginnings, and indexes as
 * nvidia-smi has them, up to the first that is neither.
 */
export function visible<G extends { index: number; uuid: string | null }>(
  gpus: readonly G[],
  value: string | undefined,
): G[] {
  if (value === undefined) return [...gpus];
  const named = value.split(',').map((text) => {
    const name = text.trim();
    return gpus.find((gpu) =>
      /^\d+$/.test(name) ? gpu.index === Number(name) : name.length > 4 && gpu.uuid?.startsWith(name),
    );
  });
  const end = named.indexOf(undefined);
  return (end < 0 ? named : named.slice(0, end)).filter((gpu) => gpu !== undefined);
}
