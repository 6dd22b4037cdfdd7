import { ApiError } from '../../client/index.js';
import { isAborted } from '../app/connection.js';

const REOPEN_MS = 2_000;

/** True for an error that a repetition would have as well. */
export const isRefusal = (error: unknown) => error instanceof ApiError && error.status < 500;

/** Repeats a work that fails until it has ended, is refused or is no longer wanted. @param onFailure is told of each failure */
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
