/** Stores, claims and a failure for tests of attempts. */
import type { Test } from 'tap';
import { ulid } from 'ulid';
import type { JobFailure } from '../../contracts/index.js';
import type { TestRedis } from '../../platform/testing/redis.js';
import { type JobStore, openJobStore } from '../job-store.js';
import type { ClaimResult } from '../jobs/attempts.js';
import { noteExecutions } from './executions.js';

export const LEASE_MS = 60_000;

/** Opens a store with keys of its own. */
export async function freshStore(t: Test, server: TestRedis): Promise<JobStore> {
  const store = noteExecutions(await openJobStore({ url: server.url, prefix: `{${ulid()}}` }));
  t.teardown(() => store.close());
  return store;
}

export function granted(claim: ClaimResult) {
  if (!claim.granted) throw new Error(`refused: ${claim.code}`);
  return claim;
}

export const FAILURE: JobFailure = {
  category: 'hardware',
  code: 'rank_lost',
  message: 'rank 1 ended',
  rank: 1,
  step: 7,
  retryable: true,
};
