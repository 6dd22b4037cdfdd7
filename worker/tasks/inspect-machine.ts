import type { WorkerGpu } from '../../state/index.js';
import type { NativeCore } from '../shared/native/adapter.js';

/** GPU that a worker may use, or could use without its problem. */
export interface MachineGpu extends WorkerGpu {
  /** Numerics fingerprint of a rank on it; null if CUDA was not queried or does not list it. */
  numerics: string | null;
}

/** Compute devices of a machine. */
export interface MachineReport {
  /** True if the native core was built with CUDA. */
  has_cuda: boolean;
  /** GPUs that CUDA_VISIBLE_DEVICES selects, with and without problems. */
  gpus: MachineGpu[];
  /** Number of devices that CUDA lists, whatever the driver's library reports; null: CUDA was not queried. */
  num_cuda_devices: number | null;
  /** Reason for which CUDA lists none although a driver is installed; null if it does, has none, or was not queried. */
  cuda_problem: string | null;
  /** Numerics fingerprint of a rank on the CPU. */
  cpu_numerics: string;
}

export interface InspectOptions {
  /** True to query GPUs. */
  gpus: boolean;
  /** True to query CUDA as well, for numerics fingerprints. Only a process of its own should do so. */
  cuda: boolean;
}

/** Inspects this machine. @throws NativeError `device_unavailable` if a driver is installed but does not work */
export function inspectMachine(core: NativeCore, { gpus, cuda }: InspectOptions): MachineReport {
  const devices = cuda ? core.cudaDevices() : null;
  const cudaProblem = cuda ? core.cudaProblem() : null;
  const unlisted = cudaProblem === null ? 'CUDA does not list it' : `CUDA does not list it: ${cudaProblem}`;
  const numerics = new Map(devices?.map(({ uuid, fingerprint }) => [uuid, fingerprint]));
  const found = gpus ? visible(core.gpus(), process.env.CUDA_VISIBLE_DEVICES) : [];
  return {
    has_cuda: devices !== null,
    num_cuda_devices: devices?.length ?? null,
    cuda_problem: cudaProblem,
    cpu_numerics: core.fingerprint('cpu'),
    gpus: found.map(({ index, uuid, name, memory_bytes, driver, problem }) => ({
      // A GPU without a UUID is identified by its index.
      uuid: uuid ?? `index-${index}`,
      name,
      memory_bytes,
      driver,
      numerics: numerics.get(uuid ?? '') ?? null,
      problem: problem ?? (devices && !numerics.has(uuid ?? '') ? unlisted : null),
    })),
  };
}

/**
 * Returns the GPUs that CUDA shows for a value of CUDA_VISIBLE_DEVICES: UUIDs, their prefixes, and indexes as in
 * nvidia-smi, up to the first entry that matches none.
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
