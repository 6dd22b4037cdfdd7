/** A request that carries an idempotency key, told from all others. */
export interface KeyedRequest extends IdempotencyInput {
  /** Of this request alone, not of its repetitions. */
  token: string;
}

/** What was answered when the request was carried out. */
export interface StoredReply {
  status: number;
  headers: Record<string, string>;
  body: string;
  /** The answer showed a secret, which is not stored. */
  has_secret: boolean;
}

export type BegunRequest = { state: 'begun' | 'running' } | { state: 'done'; reply: StoredReply };

/**
 * The idempotency keys of requests that do not keep them themselves, in the script that makes their effect, as `createJob` does. Here
 * effect and answer are two steps: when a server dies between them, its key is free again after the lease.
 */
export interface RequestRepeats {
  /**
   * Begins a request, unless one with its key runs or was carried out.
   * @throws `idempotency_key_reused` when the key was used with another body
   */
  beginRequest(request: KeyedRequest, leaseMs: number): Promise<BegunRequest>;
  /** Keeps the key of a request that is still under way. False when it is another one's by now. */
  keepRequest(request: KeyedRequest, leaseMs: number): Promise<boolean>;
  /** Remembers the answer for seven days; with null the request has changed nothing, and its key is free. */
  endRequest(request: KeyedRequest, reply: StoredReply | null): Promise<boolean>;
}

export interface IdempotencyInput {
  /** Whose key it is and for which route: the same text of another owner is another key. */
  scope: string;
  key: string;
  /** SHA-256 of the request body, hex. */
  body_hash: string;
}
