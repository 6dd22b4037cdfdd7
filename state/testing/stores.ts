import type { Test } from 'tap';
import { ulid } from 'ulid';
import { type JobStore, openJobStore } from '../job-store.js';

/** Opens stores as several processes do: with one prefix, which no other test has. They are closed with the test. */
export function openStores(t: Test, url: string): { prefix: string; open(): Promise<JobStore> } {
  const prefix = `{${ulid()}}`;
  const open = async () => {
    const store = await openJobStore({ url, prefix });
    t.teardown(() => store.close());
    return store;
  };
  return { prefix, open };
}
