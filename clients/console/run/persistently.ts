import { ApiError } from '../../typescript/index.js';
import { isAborted } from '../app/connection.js';

const REOPEN_MS = 2_000;

/** Returns true for an error of the request, which fails again if it is repeated. */
export const isRefusal = (error: unknown) => error instanceof ApiError && error.status < 500;

/**
 * Runs `work` again after each failure, until it succeeds, the server refuses it or `closed` is aborted. @param
 * onFailure called with each failure
 */
export async function persistently(
  work: () => Promise<void>,
  closed: AbortSignal,
  onFailure: (error: unknown) => void,
): Promise<void> {
  while (!closed.aborted) {
    try {
      return await work();
    } catch (error) {
      if (closed.aborted || isAborted(error)) return;
      onFailure(error);
      if (isRefusal(error)) return;
      await new Promise((resolve) => setTimeout(resolve, REOPEN_MS));
    }
  }
}
