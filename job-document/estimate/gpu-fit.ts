/** Check that a job fits into GPU memory with one rank on each GPU, and remedies if not. */
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { estimateRank, feasibleWorldSizes, maxWorldSize } from './rank-memory.js';
import { offloadedBytes } from './zero-memory.js';

/**
 * Reserve of GPU memory beyond the estimate. It covers the CUDA context with the code of all kernels, of
 * cuBLASLt and of cuDNN. It also covers the buffers of NCCL and the rounding of allocations to pages of 2
 * MiB. Not measured; meant to suffice.
 */
export const GPU_RESERVE_BYTES = 2 ** 30;

const MACHINE = { device: 'cuda', threads: 1, instruction_set: 'generic' } as const;

export interface GpuMisfit {
  /** Allowed number of ranks with the least memory per rank. */
  world_size: number;
  /** Bytes of each of these ranks, with the reserve. */
  bytes: number;
  /** Memory of the largest GPU. */
  gpu_memory_bytes: number;
  /**
   * Changes of the document, each sufficient alone; a single entry with several if all of them are needed.
   */
  remedies: string[];
}

/** Returns the memory that a GPU must have for any rank of a world size. */
export function gpuRankBytes(spec: ResolvedJobSpec, worldSize: number): number {
  // The first rank owns the most.
  return estimateRank(spec, worldSize, 0, MACHINE).total + GPU_RESERVE_BYTES;
}

/**
 * Returns `[ranks, bytes]` for each number of ranks that the job allows; the bytes apply up to the next
 * number.
 */
export function gpuBytesBySize(spec: ResolvedJobSpec): [ranks: number, bytes: number][] {
  return feasibleWorldSizes(spec).map((size) => [size, gpuRankBytes(spec, size)]);
}

/**
 * @param memories bytes of the present GPUs; more may be added, but no larger ones are assumed
 * @returns null when the job fits on some allowed number of ranks
 */
export function gpuMisfit(spec: ResolvedJobSpec, memories: readonly number[]): GpuMisfit | null {
  if (memories.length === 0 || fits(spec, memories)) return null;
  const sizes = gpuBytesBySize(spec);
  const [worldSize, bytes] = sizes.reduce((best, next) => (next[1] < best[1] ? next : best));
  return {
    world_size: worldSize,
    bytes,
    gpu_memory_bytes: Math.max(...memories),
    remedies: remediesOf(spec, memories),
  };
}

/** Host with GPUs. */
interface GpuHost {
  /** Ranks that it can run at once. */
  slots: number;
  memory_bytes: number;
}

interface HostMisfit {
  /** Number of ranks with the least memory per host. */
  world_size: number;
  /** Bytes of each of these ranks in host memory. */
  bytes: number;
  /** Memory of the largest host. */
  host_memory_bytes: number;
}

/**
 * @param hosts the present hosts
 * @returns null when the offloaded state of some number of ranks fits into host memory
 */
export function hostMisfit(spec: ResolvedJobSpec, hosts: readonly GpuHost[]): HostMisfit | null {
  if (hosts.length === 0 || spec.zero.offload === 'none') return null;
  const sizes = feasibleWorldSizes(spec).map((size) => ({
    size,
    bytes: offloadedBytes(spec, size, 0),
  }));
  const slots = hosts.reduce((sum, host) => sum + host.slots, 0);
  const holds = ({ size, bytes }: { size: number; bytes: number }) => {
    const ranks = hosts.map((host) => Math.min(host.slots, Math.floor(host.memory_bytes / bytes)));
    return ranks.reduce((sum, count) => sum + count, 0) >= Math.min(size, slots);
  };
  if (sizes.some(holds)) return null;
  const last = sizes.reduce((best, next) => (next.bytes < best.bytes ? next : best));
  const hostMemoryBytes = Math.max(...hosts.map((host) => host.memory_bytes));
  return { world_size: last.size, bytes: last.bytes, host_memory_bytes: hostMemoryBytes };
}

function fits(spec: ResolvedJobSpec, memories: readonly number[]): boolean {
  return gpuBytesBySize(spec).some(([size, bytes]) => {
    const large = memories.filter((memory) => memory >= bytes).length;
    return large >= Math.min(size, memories.length);
  });
}

interface Remedy {
  text: string;
  spec: ResolvedJobSpec;
}

function remediesOf(spec: ResolvedJobSpec, memories: readonly number[]): string[] {
  const helps = (remedy: Remedy) => fits(remedy.spec, memories);
  const found = [ranks, checkpointing, offload, microBatches].flatMap(
    (remedies) => remedies(spec).find(helps) ?? [],
  );
  if (found.length > 0) return found.map(({ text }) => text);
  // The last step of each saves the most. Smaller micro-batches give more leaves, and these allow more ranks.
  const all: Remedy = { spec, text: '' };
  for (const remedies of [checkpointing, offload, microBatches, ranks]) {
    const last = remedies(all.spec).at(-1);
    if (!last) continue;
    all.spec = last.spec;
    all.text = [all.text, last.text].filter(Boolean).join(', ');
    if (helps(all)) return [all.text];
  }
  return [];
}

/** Returns larger numbers of ranks than allowed now, up to the limit of the job's arithmetic. */
function ranks(spec: ResolvedJobSpec): Remedy[] {
  const step = spec.zero.expert_parallel_size;
  const { ranks: allowed } = spec.resources;
  const most = maxWorldSize(spec);
  const withRanks = (min: number, max: number): ResolvedJobSpec => ({
    ...spec,
    resources: { ...spec.resources, ranks: { min, max, preferred: max } },
  });
  const max = most - (most % step);
  if (max <= allowed.max) return [];
  return feasibleWorldSizes(withRanks(allowed.max + step, max)).map((size) => ({
    text: `resources.ranks.max: ${size} or more`,
    spec: withRanks(size, size),
  }));
}

function checkpointing(spec: ResolvedJobSpec): Remedy[] {
  if (spec.train.activation_checkpointing) return [];
  const train = { ...spec.train, activation_checkpointing: true };
  return [{ text: 'train.activation_checkpointing: true', spec: { ...spec, train } }];
}

function offload(spec: ResolvedJobSpec): Remedy[] {
  if (spec.zero.offload === 'cpu') return [];
  return [{ text: 'zero.offload: cpu', spec: { ...spec, zero: { ...spec.zero, offload: 'cpu' } } }];
}

/** Returns smaller micro-batches, the largest first. */
function microBatches(spec: ResolvedJobSpec): Remedy[] {
  const { micro_batch_size: now } = spec.train;
  const smaller = Array.from({ length: now - 1 }, (_, index) => now - 1 - index);
  return smaller
    .filter((size) => now % size === 0)
    .map((size) => ({
      text: `train.micro_batch_size: ${size}`,
      spec: { ...spec, train: { ...spec.train, micro_batch_size: size } },
    }));
}
