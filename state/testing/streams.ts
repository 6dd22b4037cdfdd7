/** A job whose stream grows. */
import type { Test } from 'tap';
import { ulid } from 'ulid';
import type { StreamEntry } from '../../contracts/index.js';
import { type JobStore, openJobStore } from '../job-store.js';
import type { MetricInput } from '../jobs/execution.js';
import { noteExecutions } from './executions.js';
import { createTestJob } from './jobs.js';

/** Opens a store with a job that a worker holds in epoch 1. */
export async function runningJob(
  t: Test,
  { url }: { url: string },
): Promise<{ store: JobStore; id: string }> {
  const store = noteExecutions(await openJobStore({ url, prefix: `{${ulid()}}` }));
  t.teardown(() => store.close());
  const { id } = await createTestJob(store);
  await store.claimAttempt(id, 1, 'a', 60_000);
  return { store, id };
}

export function metric(step: number): MetricInput {
  return {
    step,
    loss: 2 / step,
    grad_norm: 1,
    lr: 1e-3,
    seconds: { total: 0, data: 0, forward: 0, backward: 0, exchange: 0, optimizer: 0, gather: 0 },
    tokens: step * 10,
    tokens_per_second: null,
    world_size: 2,
    memory_bytes: 100,
  };
}

export async function readAll(store: JobStore, id: string, page: number): Promise<StreamEntry[]> {
  const all: StreamEntry[] = [];
  for (;;) {
    const entries = await store.readStream(id, all.at(-1)?.position ?? null, page);
    if (entries.length === 0) return all;
    all.push(...entries);
  }
}
