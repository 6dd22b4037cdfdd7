/** Whether a job fits on the GPUs of a pool's workers. */
import { GPU_RESERVE_BYTES, gpuMisfit, type ResolvedJobSpec, ZerofleetError } from '../contracts/index.js';
import type { WorkerAnnouncement } from './job-store/index.js';

/** The workers of the job's pool: alive, leaving or not. */
export type PoolWorkers = readonly Pick<WorkerAnnouncement, 'draining' | 'gpus'>[];

/**
 * The error of a job whose ranks fit on none of the GPUs that are there, with the numbers and with what would help; null where
 * it fits, and where that is not known: no worker is there, or one computes on its CPU.
 */
export function misfitOf(spec: ResolvedJobSpec, workers: PoolWorkers): ZerofleetError | null {
  const staying = workers.filter(({ draining }) => !draining);
  if (staying.some(({ gpus }) => gpus.length === 0)) return null;
  const healthy = staying.flatMap(({ gpus }) => gpus).filter(({ problem }) => problem === null);
  const misfit = gpuMisfit(
    spec,
    healthy.map(({ memory_bytes }) => memory_bytes),
  );
  if (misfit === null) return null;
  const { world_size, bytes, gpu_memory_bytes, remedies } = misfit;
  const help = remedies.length === 0 ? 'a smaller model, or larger GPUs' : remedies.join('; or ');
  return new ZerofleetError(
    'does_not_fit',
    `each of ${world_size} ranks needs ${gib(bytes)} of GPU memory (${gib(GPU_RESERVE_BYTES)} of it for CUDA and NCCL), and ` +
      `the GPUs of pool ${spec.resources.pool} have ${gib(gpu_memory_bytes)}; what would help: ${help}`,
    { details: { ...misfit } },
  );
}

const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(2)} GiB`;
