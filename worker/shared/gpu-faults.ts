/** Codes of a failed GPU or driver: the GPU is not used again before it was checked. */
const FAULTS: ReadonlySet<string> = new Set(['gpu_lost', 'gpu_memory_fault', 'device_unavailable']);

/** Codes of errors after which a process computes nothing more on its GPU. */
const LOST: ReadonlySet<string> = new Set([...FAULTS, 'gpu_fault', 'device_failed']);

/** Codes of errors on a device, whatever their cause. */
const DEVICE_CODES: ReadonlySet<string> = new Set([...LOST, 'out_of_memory']);

/** Returns whether an error makes the GPU unhealthy. It is no error of the job, which continues elsewhere. */
export function isGpuFault(code: string): boolean {
  return FAULTS.has(code);
}

export function isDeviceCode(code: string): boolean {
  return DEVICE_CODES.has(code);
}

export function losesDevice(code: string): boolean {
  return LOST.has(code);
}
