import type { ApiKey } from '../../contracts/index.js';

/** Maximum age of a cached API key before it is looked up again. */
export const API_KEY_BELIEVED_MS = 1_000;
const KEPT_MOST = 1_000;

/**
 * Cache of API key look-ups. Every change of a key, by any server, clears the caches of all servers (the owner calls `forget`). If that
 * message is lost with a connection, a cached key is used for at most `API_KEY_BELIEVED_MS`.
 */
export class ApiKeyCache {
  private readonly kept = new Map<string, { key: ApiKey; until: number }>();
  private changes = 0;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /**
   * @param hash SHA-256 of the secret
   * @param look queries the store; the result is as old as the moment the query began
   */
  async find(hash: string, look: () => Promise<ApiKey | null>): Promise<ApiKey | null> {
    const known = this.kept.get(hash);
    const asked = this.now();
    if (known !== undefined && asked < known.until) return known.key;
    const { changes } = this;
    const key = await look();
    this.kept.delete(hash);
    // The answer may predate a change that happened meanwhile, so it is not cached.
    if (key === null || changes !== this.changes) return key;
    if (this.kept.size >= KEPT_MOST) this.kept.clear();
    this.kept.set(hash, { key, until: asked + API_KEY_BELIEVED_MS });
    return key;
  }

  /** Records a use of a cached key, so that not every request of the same second writes to Redis. */
  used(hash: string, at: string): void {
    const known = this.kept.get(hash);
    if (known !== undefined) known.key = { ...known.key, last_used_at: at };
  }

  forget(): void {
    this.changes += 1;
    this.kept.clear();
  }
}
