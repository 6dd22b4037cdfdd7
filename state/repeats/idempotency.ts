import { createHash } from 'node:crypto';

export interface IdempotencyInput {
  /** Owner and route of the key: keys of different scopes are independent. */
  scope: string;
  key: string;
  /** SHA-256 of the request body, hex. */
  body_hash: string;
}

export const IDEMPOTENCY_TTL_MS = 7 * 24 * 3600 * 1000;

/** Stored form of an idempotency key; the key itself is free text and is never stored. */
export interface IdempotencyEntry {
  id: string;
  body_hash: string;
  ttl_ms: number;
}

export function idempotencyEntry({ scope, key, body_hash }: IdempotencyInput): IdempotencyEntry {
  // Hashed because the key is free text of any length, and scope and key must not run into each other.
  const id = createHash('sha256')
    .update(JSON.stringify([scope, key]))
    .digest('hex');
  return { id, body_hash, ttl_ms: IDEMPOTENCY_TTL_MS };
}
