/** What says that a GPU, or what drives it, failed: nothing more should be computed on it before it was looked at. */
const FAULTS: ReadonlySet<string> = new Set(['gpu_lost', 'gpu_memory_fault', 'device_unavailable']);

/** What a device had a part in, whoever is to blame. */
const DEVICE_CODES: ReadonlySet<string> = new Set([...FAULTS, 'gpu_fault', 'device_failed', 'out_of_memory']);

/** Whether an error takes the GPU out. Such a one is no error of the job: it goes on elsewhere. */
export function isGpuFault(code: string): boolean {
  return FAULTS.has(code);
}

export function isDeviceCode(code: string): boolean {
  return DEVICE_CODES.has(code);
}
