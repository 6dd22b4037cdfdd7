import { ZerofleetError } from '../../contracts/index.js';

/** Returns null for messages that a template refuses. */
export function orNull<T>(render: () => T): T | null {
  try {
    return render();
  } catch (error) {
    if (error instanceof ZerofleetError) return null;
    throw error;
  }
}
