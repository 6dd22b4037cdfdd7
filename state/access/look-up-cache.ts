/** Maximum age of a cached key or session before it is looked up again. */
export const LOOK_UP_BELIEVED_MS = 1_000;
const KEPT_MOST = 1_000;

/**
 * Cache of look-ups by the hash of a secret. Every change of a key or session, by any server, clears the caches of all
 * servers (the owner calls `forget`). If that message is lost with a connection, a cached value is used for at most
 * `LOOK_UP_BELIEVED_MS`.
 */
export class LookUpCache<T> {
  private readonly kept = new Map<string, { value: T; until: number }>();
  private changes = 0;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /**
   * @param name SHA-256 of the secret, or another name of the value
   * @param look queries the store; the result is as old as the moment the query began
   */
  async find(name: string, look: () => Promise<T | null>): Promise<T | null> {
    const known = this.kept.get(name);
    const asked = this.now();
    if (known !== undefined && asked < known.until) return known.value;
    const { changes } = this;
    const value = await look();
    this.kept.delete(name);
    // The answer may predate a change that happened meanwhile, so it is not cached.
    if (value === null || changes !== this.changes) return value;
    if (this.kept.size >= KEPT_MOST) this.kept.clear();
    this.kept.set(name, { value, until: asked + LOOK_UP_BELIEVED_MS });
    return value;
  }

  /** Changes all cached values, so that not every request of the same second notes the same in Redis. */
  revise(change: (value: T) => T): void {
    for (const known of this.kept.values()) known.value = change(known.value);
  }

  forget(): void {
    this.changes += 1;
    this.kept.clear();
  }
}
