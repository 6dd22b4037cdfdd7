import { createHash } from 'node:crypto';

/** SHA-256 of a secret, hex: what the store keeps of it. */
export function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
