/** Waiting for asynchronous conditions, with long timeouts for slow or busy machines. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Timeout of a wait, in milliseconds. */
export const WAIT_MS = 240_000;
const POLL_MS = 5;
const RETRY_MS = 50;

/** Waits until a condition holds. @throws after the timeout */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + WAIT_MS; !(await condition()); await sleep(POLL_MS))
    if (Date.now() > deadline) throw new Error(`timed out waiting for ${condition}`);
}

/**
 * Repeats a call until it succeeds: a server that has just started refuses. @throws the last error after the
 * timeout, or the reason of the signal after a call that fails
 */
export async function untilDone<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (const deadline = Date.now() + WAIT_MS; ; await sleep(RETRY_MS)) {
    try {
      return await call();
    } catch (error) {
      signal?.throwIfAborted();
      if (Date.now() > deadline) throw error;
    }
  }
}
