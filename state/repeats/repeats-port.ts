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
 * Idempotency keys of requests whose effect and reply are two steps. (`createJob` stores its key in the command of its effect instead.)
 * When a server dies between the two steps, the key is free again after the lease.
 */
export interface RequestRepeats {
  /**
   * Begins a request, unless one with the same key is in progress or completed.
   * @throws `idempotency_key_reused` when the key was used with another body
   */
  beginRequest(request: KeyedRequest, leaseMs: number): Promise<BegunRequest>;
  /** Renews the lease of a request in progress. Returns false when another request holds the key. */
  keepRequest(request: KeyedRequest, leaseMs: number): Promise<boolean>;
  /** Stores the reply for seven days; null: the request has changed nothing, and its key is free again. */
  endRequest(request: KeyedRequest, reply: StoredReply | null): Promise<boolean>;
}

export interface IdempotencyInput {
  /** Owner and route of the key: keys of different scopes are independent. */
  scope: string;
  key: string;
  /** SHA-256 of the request body, hex. */
  body_hash: string;
}
