import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../../clients/typescript/index.js';

const RETRY_MS = 150;
const REQUEST_TIMEOUT_MS = 8_000;

/** Retries an idempotent request until it is answered; throws permanent refusals. */
export async function retryUntilAnswered<T>(request: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await withTimeout(request());
    } catch (error) {
      // A broken connection or a missing answer says nothing about the request.
      if (error instanceof ApiError && error.status < 500 && error.status !== 429) throw error;
      await sleep(RETRY_MS);
    }
  }
}

async function withTimeout<T>(promise: Promise<T>): Promise<T> {
  const timer = new AbortController();
  const late = sleep(REQUEST_TIMEOUT_MS, undefined, { signal: timer.signal }).then(
    () => Promise.reject(new Error('no answer in time')),
    () => new Promise<never>(() => undefined),
  );
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer.abort();
  }
}
