/** Waits for changes of a record that Redis publishes. */
import { redisCall, type StoreContext } from './context.js';

export interface WaitOptions {
  timeoutMs: number;
  signal?: AbortSignal;
}

/**
 * Waits until fields of the hash `key` meet a condition; every change of them is published on `channel`. Any number of
 * waiters share one subscription.
 * @returns false when `timeoutMs` passed or `signal` was aborted first
 */
export async function waitFields(
  context: StoreContext,
  { key, fields, channel }: { key: string; fields: readonly string[]; channel: string },
  areReached: (values: (string | null)[]) => boolean,
  { timeoutMs, signal }: WaitOptions,
): Promise<boolean> {
  const hasMore = async () => areReached(await redisCall(context.redis.hmget(key, ...fields)));
  if (await hasMore()) return true;

  const waiting = new AbortController();
  const stop = () => waiting.abort();
  const timer = setTimeout(stop, timeoutMs);
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) stop();
  try {
    return await untilWoken(context, channel, hasMore, waiting.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

/** Checks when the subscription is active and after each message; returns false when `signal` ends the wait. */
async function untilWoken(
  context: StoreContext,
  channel: string,
  hasMore: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<boolean> {
  let wake: () => void = () => undefined;
  let woken = new Promise<void>((resolve) => {
    wake = resolve;
  });
  signal.addEventListener('abort', () => wake(), { once: true });
  const unsubscribe = await context.subscriptions.add(channel, () => wake());
  try {
    while (!signal.aborted) {
      if (await hasMore()) return true;
      await woken;
      woken = new Promise((resolve) => {
        wake = resolve;
      });
    }
    return false;
  } finally {
    await unsubscribe();
  }
}
