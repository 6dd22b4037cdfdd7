/** Whether a job fits into the memory of GPUs, one rank on each; if not, how far it is from that, and what would help. */
import type { ResolvedJobSpec } from '../../contracts/index.js';
import { estimateRank, feasibleWorldSizes, maxWorldSize } from './rank-memory.js';
import { offloadedBytes } from './zero-memory.js';

/**
 * What of a GPU's memory is not for the parts of an estimate: the CUDA context with the code of all kernels and of cuBLASLt, the
 * buffers of NCCL, and what is lost because memory is given in whole pages of 2 MiB. Not measured; meant to be enough.
 */
export const GPU_RESERVE_BYTES = 2 ** 30;

const MACHINE = { device: 'cuda', threads: 1, instruction_set: 'generic' } as const;

export interface GpuMisfit {
  /** The number of ranks, of those that the job allows, on which each needs the least. */
  world_size: number;
  /** What each of them needs, with the reserve. */
  bytes: number;
  /** Of the largest GPU. */
  gpu_memory_bytes: number;
  /** Changes of the document of which each alone would be enough; one entry with several where it takes all of them. */
  remedies: string[];
}

/** Memory that a GPU must have for any rank of so many. */
export function gpuRankBytes(spec: ResolvedJobSpec, worldSize: number): number {
  // The first rank owns the most.
  return estimateRank(spec, worldSize, 0, MACHINE).total + GPU_RESERVE_BYTES;
}

/** The same for each number of ranks that the job allows, as `[ranks, bytes]`; between two of them the first one's holds. */
export function gpuBytesBySize(spec: ResolvedJobSpec): [ranks: number, bytes: number][] {
  return feasibleWorldSizes(spec).map((size) => [size, gpuRankBytes(spec, size)]);
}

/**
 * @param memories bytes of the GPUs that are there; more may come, but no larger ones are hoped for
 * @returns null when the job fits on some number of ranks that it allows
 */
export function gpuMisfit(spec: ResolvedJobSpec, memories: readonly number[]): GpuMisfit | null {
  if (memories.length === 0 || fits(spec, memories)) return null;
  const sizes = gpuBytesBySize(spec);
  const [world_size, bytes] = sizes.reduce((best, next) => (next[1] < best[1] ? next : best));
  return { world_size, bytes, gpu_memory_bytes: Math.max(...memories), remedies: remediesOf(spec, memories) };
}

/** A host with GPUs. */
export interface GpuHost {
  /** Ranks that it can run at once. */
  slots: number;
  memory_bytes: number;
}

export interface HostMisfit {
  /** On so many ranks it would need the least of each host. */
  world_size: number;
  /** What each of them keeps in host memory. */
  bytes: number;
  /** Of the largest host. */
  host_memory_bytes: number;
}

/**
 * @param hosts those that are there
 * @returns null when the memory of the hosts has room for what the ranks of some number offload
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
  const host_memory_bytes = Math.max(...hosts.map((host) => host.memory_bytes));
  return { world_size: last.size, bytes: last.bytes, host_memory_bytes };
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
  const found = [ranks, checkpointing, offload, microBatches].flatMap((of) => of(spec).find(helps) ?? []);
  if (found.length > 0) return found.map(({ text }) => text);
  // The last of each is the one that saves the most. Fewer tokens at once make for more leaves, and these for more ranks.
  const all = [checkpointing, offload, microBatches, ranks].reduce<Remedy>(
    (before, of) => {
      const last = of(before.spec).at(-1);
      return last ? { spec: last.spec, text: [before.text, last.text].filter(Boolean).join(', ') } : before;
    },
    { spec, text: '' },
  );
  return all.text !== '' && helps(all) ? [all.text] : [];
}

/** More of them than are allowed now, as far as the job's arithmetic goes. */
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

/** Smaller ones, the largest first. */
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
