import { nowText, type StoreContext } from '../core/context.js';
import { finish } from './finish.js';

/** Jobs expired per call, which bounds the run time of the command. */
const EXPIRE_BATCH = 100;

export function waitLimits(context: StoreContext) {
  return {
    /**
     * Pauses or cancels jobs that have waited for slots longer than their `limits.max_wait`. Any process may
     * call it at any time.
     * @returns the ids of the jobs that it stopped
     */
    async expireWaiting(): Promise<string[]> {
      const [stopped, cancel] = await context.commands.run('expire_waiting', {
        limit: EXPIRE_BATCH,
        at: nowText(),
      });
      const ids = [...asTexts(stopped)];
      for (const id of asTexts(cancel)) {
        // Null: a worker claimed it meanwhile.
        const job = await finish(context, id, null, 'cancelled', { reason: 'budget_reached' });
        if (job) ids.push(id);
      }
      return ids;
    },
  };
}

function asTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
