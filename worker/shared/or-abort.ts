import { deferred } from './deferred.js';

/** Waits for a promise until one of the signals is aborted. @throws errors of the promise; the reason of the signal */
export async function orAbort<T>(promise: Promise<T>, ...signals: readonly AbortSignal[]): Promise<T> {
  // The promise may be rejected later, when nobody waits for it.
  promise.catch(() => undefined);
  const aborted = deferred<never>();
  aborted.promise.catch(() => undefined);
  const listeners = signals.map((signal) => ({ signal, listener: () => aborted.reject(signal.reason) }));
  for (const { signal, listener } of listeners) {
    if (signal.aborted) listener();
    signal.addEventListener('abort', listener, { once: true });
  }
  try {
    return await Promise.race([aborted.promise, promise]);
  } finally {
    for (const { signal, listener } of listeners) signal.removeEventListener('abort', listener);
  }
}
