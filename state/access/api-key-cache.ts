import type { ApiKey } from '../../contracts/index.js';

/** How long a key may be believed that a server has not looked up anew. */
export const API_KEY_BELIEVED_MS = 1_000;
const KEPT_MOST = 1_000;

/**
 * API keys as they were looked up last. Every change of a key, by whichever server, makes all servers forget all keys at once
 * (`forget` is to be called then); should that message be lost with a connection, a key is believed for `API_KEY_BELIEVED_MS` at most.
 */
export class ApiKeyCache {
  private readonly kept = new Map<string, { key: ApiKey; until: number }>();
  private changes = 0;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /**
   * @param hash of the secret
   * @param look asks the store; its answer counts from the moment that it was asked
   */
  async find(hash: string, look: () => Promise<ApiKey | null>): Promise<ApiKey | null> {
    const known = this.kept.get(hash);
    const asked = this.now();
    if (known !== undefined && asked < known.until) return known.key;
    const { changes } = this;
    const key = await look();
    this.kept.delete(hash);
    // What was changed meanwhile may be what was answered, or not.
    if (key === null || changes !== this.changes) return key;
    if (this.kept.size >= KEPT_MOST) this.kept.clear();
    this.kept.set(hash, { key, until: asked + API_KEY_BELIEVED_MS });
    return key;
  }

  /** Of a key that is kept: so that not every request of a second notes its use. */
  used(hash: string, at: string): void {
    const known = this.kept.get(hash);
    if (known !== undefined) known.key = { ...known.key, last_used_at: at };
  }

  forget(): void {
    this.changes += 1;
    this.kept.clear();
  }
}
