import { randomPiece } from '../../platform/random.js';
import { nowText, type StoreContext } from '../core/context.js';
import type { EventInput } from '../jobs/execution.js';

/** An integration of a job by its index in the document; the index after them is that of its answers to prompts. */
interface ForwardRef {
  job_id: string;
  index: number;
}

export interface ClaimedForward extends ForwardRef {
  /** Identifies the claim. */
  token: string;
  /** Last number of the job's stream at the time of the claim. */
  seq: number;
  /** As the last claim has saved it; null for the first one. */
  state: unknown;
  /** The process of the last claim died, or was slower than its lease: what it did last is unknown. */
  interrupted: boolean;
}

export interface ClaimTerms {
  limit: number;
  /** Time after which the claim expires if it is not renewed. */
  lease_ms: number;
  /** Interval at which the stream of a job without news is looked at. */
  idle_ms: number;
}

export type ForwardEvent = Required<Pick<EventInput, 'type' | 'data'>>;

export interface ForwardSave {
  state: object;
  /**
   * `lease_ms` renews the claim. The others end it:
   * - `due_ms`: the next claim comes after this time;
   * - `seq`, if given: the next claim waits until the stream is longer than `seq`, and comes at the latest `idle_ms`
   *   after that;
   * - `beat_ms`, if given: the next claim comes after this time even without news;
   * - `'done'`: there is no next claim.
   */
  next: { lease_ms: number } | { due_ms: number; seq?: number; beat_ms?: number } | 'done';
  /** Is written to the job's stream. */
  event?: ForwardEvent;
}

/** Integrations that one claim looks at: it bounds the run time of the command. */
const LOOK = 200;
const TOKEN_BYTES = 8;

type RawClaim = [job_id: string, index: string, seq: string, state: string, interrupted: string];

/**
 * Forwarding to experiment trackers: which integrations of jobs are due, and how far each is.
 *
 * At most one process has the claim of an integration. A claim that is neither renewed nor ended expires, and
 * the next one learns that it was interrupted. The creation of a job makes its integrations due, and so does
 * a retry.
 *
 * The answers of checkpoints to the prompts of a document follow the job as an integration does.
 *
 * Excluded: what the state means, and forwarding itself (api/integrations).
 */
export function forwards({ commands }: Pick<StoreContext, 'commands'>) {
  return {
    /** Claims integrations that are due. */
    async claimForwards(terms: ClaimTerms): Promise<ClaimedForward[]> {
      const token = randomPiece(TOKEN_BYTES).toString('hex');
      const claimed = (await commands.run('claim_forwards', { ...terms, look: LOOK, token })) as RawClaim[];
      return claimed.map(([jobId, index, seq, state, interrupted]) => ({
        job_id: jobId,
        index: Number(index),
        token,
        seq: Number(seq),
        state: state === '' ? null : JSON.parse(state),
        interrupted: interrupted === '1',
      }));
    },

    /**
     * Returns false when the claim has expired and another one began, or the job is gone: nothing is saved.
     */
    async saveForward(
      { job_id, index, token }: Pick<ClaimedForward, 'job_id' | 'index' | 'token'>,
      { state, next, event }: ForwardSave,
    ): Promise<boolean> {
      const [saved] = await commands.run('save_forward', {
        job_id,
        index,
        token,
        state: JSON.stringify(state),
        ...(next === 'done' ? { done: true } : next),
        ...(event && { event: { type: event.type, at: nowText(), data: JSON.stringify(event.data) } }),
      });
      return saved === '1';
    },
  };
}
