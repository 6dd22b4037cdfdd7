import { type ResolvedJobSpec, ZerofleetError } from '../../../contracts/index.js';
import { totalMemory, usableMemory } from '../../../platform/process/usable-memory.js';

/** Share of the machine's available memory that a model may take. */
const MEMORY_SHARE = 0.8;

/** Memory of a device for models: now, and if no model were loaded. */
export interface Room {
  free_bytes: number;
  total_bytes: number;
}

export function elementBytes(precision: ResolvedJobSpec['train']['precision']): number {
  return precision === 'fp32' ? 4 : 2;
}

/**
 * Requires that a GPU, or this machine, has `bytes` for a model.
 * @throws ZerofleetError `model_does_not_fit`, `model_memory_in_use`
 */
export function requireMemory(bytes: number, gpu: Room | null): void {
  const { free_bytes, total_bytes } = gpu ?? {
    free_bytes: MEMORY_SHARE * usableMemory(),
    total_bytes: MEMORY_SHARE * totalMemory(),
  };
  if (bytes <= free_bytes) return;
  const mib = (count: number) => `${Math.max(0, Math.ceil(count / 2 ** 20))} MiB`;
  const owner = gpu === null ? 'worker' : "worker's GPU";
  const needed = `the model needs ${mib(bytes)}, and the ${owner} has`;
  if (bytes > total_bytes)
    throw new ZerofleetError(
      'model_does_not_fit',
      `${needed} ${mib(total_bytes)} for models; use a worker with more memory`,
    );
  throw new ZerofleetError(
    'model_memory_in_use',
    `${needed} ${mib(free_bytes)} left; try again when trainings have ended and other models are idle`,
  );
}
