/** Pools, workers and the queue in words and figures. */
import type { Job, Pool, Worker } from '../../../contracts/types.js';

type SlotState = 'used' | 'free' | 'draining' | 'problem';

/** The slots of a worker: used ones first; the others cannot be used while it drains or has a problem. */
export function slotsOf(worker: Pick<Worker, 'slots' | 'used_slots' | 'draining' | 'problem'>): SlotState[] {
  const { slots, used_slots, draining, problem } = worker;
  const idle = problem !== null ? 'problem' : draining ? 'draining' : 'free';
  const total = Math.max(slots, used_slots);
  return Array.from({ length: total }, (_, index) => (index < used_slots ? 'used' : idle));
}

/** Jobs that wait for slots in the order of their queues, by pool, then those that a worker begins. */
export function inOrder(jobs: readonly Job[]): Job[] {
  const key = ({ queue_position }: Job) => queue_position ?? Number.POSITIVE_INFINITY;
  const pool = ({ spec }: Job) => spec.resources.pool;
  return [...jobs].sort(
    (a, b) =>
      pool(a).localeCompare(pool(b)) ||
      (key(a) === key(b) ? a.created_at.localeCompare(b.created_at) : key(a) - key(b)),
  );
}

/**
 * Why a job does not run yet, as far as the slots of its pool tell. @param pool null for a pool without workers and
 * jobs
 */
export function waitOf(job: Pick<Job, 'state' | 'spec'>, pool: Pool | null): string {
  if (job.state === 'provisioning') return 'has its slots, begins';
  const { min } = job.spec.resources.ranks;
  if (pool === null || pool.workers === 0) return 'the pool has no workers';
  const largest = Math.max(0, ...pool.groups.map(({ slots }) => slots));
  if (largest < min) return `needs ${slotsText(min)} of equal numerics, the pool has ${largest}`;
  const free = Math.max(0, ...pool.groups.map(({ slots, used_slots }) => slots - used_slots));
  if (free < min) return `needs ${slotsText(min)}, ${free} ${free === 1 ? 'is' : 'are'} free`;
  return 'others come first, or its ranks need larger GPUs';
}

const slotsText = (num: number) => (num === 1 ? '1 slot' : `${num} slots`);

interface GpuKind {
  name: string;
  memory_bytes: number;
  count: number;
  problems: { uuid: string; problem: string }[];
}

/** GPUs of a worker by model and memory, in their order. */
export function gpuKinds(gpus: Worker['gpus']): GpuKind[] {
  const kinds = new Map<string, GpuKind>();
  for (const { uuid, name, memory_bytes, problem } of gpus) {
    const key = `${name} ${memory_bytes}`;
    const kind = kinds.get(key) ?? { name, memory_bytes, count: 0, problems: [] };
    kind.count += 1;
    if (problem !== null) kind.problems.push({ uuid, problem });
    kinds.set(key, kind);
  }
  return [...kinds.values()];
}
