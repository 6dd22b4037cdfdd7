import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits for work whose end does not matter, and no longer than so many milliseconds; its failure is none. For closing
 * connections: one whose other side was cut off ends only when TCP sends again, which may be minutes later.
 */
export async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  const late = sleep(ms, undefined, { signal: done.signal }).catch(() => undefined);
  await Promise.race([work.then(ignore, ignore), late]);
  done.abort();
}

function ignore(): void {}
