import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits for work until a timeout and ignores its failure. Used to close connections: a connection that was cut off ends
 * only when TCP retransmits, which may take minutes.
 */
export async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  const late = sleep(ms, undefined, { signal: done.signal }).catch(() => undefined);
  await Promise.race([work.then(ignore, ignore), late]);
  done.abort();
}

function ignore(): void {}
