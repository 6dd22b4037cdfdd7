/** Waiting for what happens elsewhere, with patience: the machine may be slow, or have other things to do. */
import { setTimeout as sleep } from 'node:timers/promises';

/** How long a test waits for what has to come, in milliseconds. */
export const WAIT_MS = 240_000;
const POLL_MS = 5;
const RETRY_MS = 50;

/** Waits until a condition holds. @throws when it does not for minutes */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + WAIT_MS; !(await condition()); await sleep(POLL_MS))
    if (Date.now() > deadline) throw new Error(`waited in vain for ${condition}`);
}

/** Calls until it works: a server that has just begun refuses. @throws the last error when it has not worked for minutes */
export async function untilDone<T>(call: () => Promise<T>): Promise<T> {
  for (const deadline = Date.now() + WAIT_MS; ; await sleep(RETRY_MS)) {
    try {
      return await call();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}
