import { setTimeout as delay } from 'node:timers/promises';
import type { RetryPolicy } from '../../contracts/rank-protocol.js';

interface RetryOptions {
  /** Returns whether an error is transient; other errors are thrown at once. */
  retryable(error: unknown): boolean;
  /** Ends the waiting; the last error is thrown. */
  signal?: AbortSignal;
  onRetry?(error: unknown, attempt: number): void;
}

/**
 * Returns the delay before attempt `attempt + 1`, in milliseconds. It is an exponential backoff with jitter between
 * half and all of it, so that callers that failed together do not retry together. Randomness affects only the time of a
 * retry.
 * @param random between 0 and 1
 */
export function backoffMs(policy: RetryPolicy, attempt: number, random: () => number = Math.random): number {
  const most = Math.min(policy.max_delay_ms, policy.first_delay_ms * 2 ** (attempt - 1));
  return (most / 2) * (1 + random());
}

/**
 * Runs `operation` until it succeeds, fails permanently, the attempts are exhausted or `signal` is aborted.
 */
export async function retry<T>(
  operation: () => Promise<T>,
  policy: RetryPolicy,
  options: RetryOptions,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await operation();
    } catch (error) {
      if (attempt >= policy.attempts || options.signal?.aborted || !options.retryable(error)) throw error;
      options.onRetry?.(error, attempt);
      await waitOrAbort(backoffMs(policy, attempt), options.signal);
      if (options.signal?.aborted) throw error;
    }
  }
}

/** Waits `ms`, or until `signal` is aborted; does not reject. */
export async function waitOrAbort(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal ? { signal } : {}).catch(() => undefined);
}
