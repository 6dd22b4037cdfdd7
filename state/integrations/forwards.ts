import { randomPiece } from '../../platform/random.js';
import { nowText, type StoreContext } from '../core/context.js';
import type { Forwards } from './forwards-port.js';

/** Integrations that one claim looks at: it bounds the run time of the command. */
const LOOK = 200;
const TOKEN_BYTES = 8;

type RawClaim = [job_id: string, index: string, seq: string, state: string, interrupted: string];

export function forwards({ commands }: Pick<StoreContext, 'commands'>): Forwards {
  return {
    async claimForwards(terms) {
      const token = randomPiece(TOKEN_BYTES).toString('hex');
      const claimed = (await commands.run('claim_forwards', { ...terms, look: LOOK, token })) as RawClaim[];
      return claimed.map(([job_id, index, seq, state, interrupted]) => ({
        job_id,
        index: Number(index),
        token,
        seq: Number(seq),
        state: state === '' ? null : JSON.parse(state),
        interrupted: interrupted === '1',
      }));
    },

    async saveForward({ job_id, index, token }, { state, next, event }) {
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
