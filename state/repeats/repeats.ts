import type { StoreContext } from '../core/context.js';
import { idempotencyEntry } from './idempotency.js';
import type { BegunRequest, KeyedRequest, RequestRepeats, StoredReply } from './repeats-port.js';

export function requestRepeats({ commands }: StoreContext): RequestRepeats {
  async function hold(request: KeyedRequest, change: { lease_ms?: number; reply?: string }) {
    const { id } = idempotencyEntry(request);
    const [held] = await commands.run('hold_request', { id, token: request.token, ...change });
    return held === '1';
  }

  return {
    async beginRequest(request, leaseMs): Promise<BegunRequest> {
      const entry = idempotencyEntry(request);
      const call = { ...entry, token: request.token, lease_ms: leaseMs };
      const [state, reply] = await commands.run('begin_request', call);
      if (state !== 'done') return { state: state as 'begun' | 'running' };
      return { state, reply: JSON.parse(reply as string) as StoredReply };
    },

    keepRequest: (request, leaseMs) => hold(request, { lease_ms: leaseMs }),

    endRequest: (request, reply) => hold(request, reply === null ? {} : { reply: JSON.stringify(reply) }),
  };
}
