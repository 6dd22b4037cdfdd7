import type { StoreContext } from '../core/context.js';
import { type IdempotencyInput, idempotencyEntry } from './idempotency.js';

/** A request that carries an idempotency key. */
export interface KeyedRequest extends IdempotencyInput {
  /** Random token of this request; a repetition has another. */
  token: string;
}

/** Reply of a completed request. */
export interface StoredReply {
  status: number;
  headers: Record<string, string>;
  body: string;
  /** The reply contained a secret, which is not stored. */
  has_secret: boolean;
}

export type BegunRequest = { state: 'begun' | 'running' } | { state: 'done'; reply: StoredReply };

/**
 * Idempotency keys of requests whose effect and reply are two steps. (`createJob` stores its key in the
 * command of its effect instead.) When a server dies between the two steps, the key is free again after the
 * lease.
 */
export type RequestRepeats = ReturnType<typeof requestRepeats>;

export function requestRepeats({ commands }: StoreContext) {
  async function hold(request: KeyedRequest, change: { lease_ms?: number; reply?: string }) {
    const { id } = idempotencyEntry(request);
    const [held] = await commands.run('hold_request', { id, token: request.token, ...change });
    return held === '1';
  }

  return {
    /**
     * Begins a request, unless one with the same key is in progress or completed.
     * @throws `idempotency_key_reused` when the key was used with another body
     */
    async beginRequest(request: KeyedRequest, leaseMs: number): Promise<BegunRequest> {
      const entry = idempotencyEntry(request);
      const call = { ...entry, token: request.token, lease_ms: leaseMs };
      const [state, reply] = await commands.run('begin_request', call);
      if (state !== 'done') return { state: state as 'begun' | 'running' };
      return { state, reply: JSON.parse(reply as string) as StoredReply };
    },

    /** Renews the lease of a request in progress. Returns false when another request holds the key. */
    keepRequest: (request: KeyedRequest, leaseMs: number): Promise<boolean> =>
      hold(request, { lease_ms: leaseMs }),

    /** Stores the reply for seven days; null: the request has changed nothing, and its key is free again. */
    endRequest: (request: KeyedRequest, reply: StoredReply | null): Promise<boolean> =>
      hold(request, reply === null ? {} : { reply: JSON.stringify(reply) }),
  };
}
