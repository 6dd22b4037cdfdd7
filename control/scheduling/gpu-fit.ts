/** Check that a job fits on the GPUs of a pool's workers. */

import { type ResolvedJobSpec, ZerofleetError } from '../../contracts/index.js';
import {
  GPU_RESERVE_BYTES,
  type GpuMisfit,
  gpuMisfit,
  hostMisfit,
  type RankBudget,
} from '../../job-document/index.js';
import type { WorkerAnnouncement } from '../../state/index.js';

/** Live workers of the job's pool, draining or not. */
type PoolWorkers = readonly Pick<WorkerAnnouncement, 'draining' | 'gpus' | 'slots' | 'memory_bytes'>[];

/**
 * Returns the error of a job whose ranks fit on none of the GPUs, or whose offloaded state does not fit into
 * host memory, with the numbers and remedies. Returns null if it fits or if that is unknown: there is no
 * worker, or one computes on its CPU.
 */
export function misfitOf(spec: ResolvedJobSpec, workers: PoolWorkers): ZerofleetError | null {
  const staying = workers.filter(({ draining }) => !draining);
  if (staying.some(({ gpus }) => gpus.length === 0)) return null;
  const healthy = staying.flatMap(({ gpus }) => gpus).filter(({ problem }) => problem === null);
  const misfit = gpuMisfit(
    spec,
    healthy.map(({ memory_bytes }) => memory_bytes),
  );
  return misfit === null ? hostError(spec, staying) : gpuError(spec, misfit);
}

/** Host memory of a rank beyond the estimate: its program, and the workspace of its threads. */
const CPU_RESERVE_BYTES = 2 ** 28;

/**
 * Returns the memory that a rank has on any of the workers, if ranks use all slots. Ranks compute on GPUs only where
 * all workers have some. Null without workers that take jobs.
 */
export function budgetOf(workers: PoolWorkers): RankBudget | null {
  const staying = workers.filter(({ draining }) => !draining);
  const onCpus = staying.filter(({ gpus }) => gpus.length === 0);
  const healthy = staying.flatMap(({ gpus }) => gpus).filter(({ problem }) => problem === null);
  const [device, sizes] =
    onCpus.length > 0
      ? (['cpu', onCpus.map(({ memory_bytes, slots }) => memory_bytes / slots - CPU_RESERVE_BYTES)] as const)
      : (['cuda', healthy.map(({ memory_bytes }) => memory_bytes - GPU_RESERVE_BYTES)] as const);
  return sizes.length === 0 ? null : { device, bytes: Math.min(...sizes) };
}

function gpuError(spec: ResolvedJobSpec, misfit: GpuMisfit): ZerofleetError {
  const { world_size, bytes, gpu_memory_bytes, remedies } = misfit;
  const help = remedies.length === 0 ? 'a smaller model, or larger GPUs' : remedies.join('; or ');
  return new ZerofleetError(
    'insufficient_memory',
    `each of ${world_size} ranks needs ${gib(bytes)} of GPU memory (${gib(GPU_RESERVE_BYTES)} of it for CUDA and NCCL), and ` +
      `the GPUs of pool ${spec.resources.pool} have ${gib(gpu_memory_bytes)}; what would help: ${help}`,
    { details: { ...misfit } },
  );
}

function hostError(spec: ResolvedJobSpec, hosts: PoolWorkers): ZerofleetError | null {
  const misfit = hostMisfit(spec, hosts);
  if (misfit === null) return null;
  const { world_size, bytes, host_memory_bytes } = misfit;
  return new ZerofleetError(
    'insufficient_memory',
    `with zero.offload: cpu each of ${world_size} ranks keeps ${gib(bytes)} in the memory of its host, which is more than the hosts of ` +
      `pool ${spec.resources.pool} have for them (the largest ${gib(host_memory_bytes)} for all of its ranks); what would help: more ` +
      'ranks on more hosts, zero.master_dtype: fp16 with precision fp16, or zero.offload: none',
    { details: { ...misfit } },
  );
}

const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(2)} GiB`;
