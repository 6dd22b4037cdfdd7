interface Entry<T> {
  part: T;
  users: number;
}

/** Any name may be a pool's, so not every one that was ever asked for keeps its connections. */
const MAX_OPEN = 64;

/** What each pool has one of, such as a queue with its connections: made when it is used, closed when others were used since. */
export class PerPool<T> {
  /** The one that was used longest ago first. */
  readonly #entries = new Map<string, Entry<T>>();
  readonly #closing = new Set<Promise<void>>();

  constructor(
    private readonly parts: { open(pool: string): T; close(part: T): Promise<unknown> },
    private readonly max_open = MAX_OPEN,
  ) {}

  /** It stays open as long as `work` goes on. */
  async use<R>(pool: string, work: (part: T) => Promise<R>): Promise<R> {
    const entry = this.#entries.get(pool) ?? { part: this.parts.open(pool), users: 0 };
    this.#entries.delete(pool);
    this.#entries.set(pool, entry);
    entry.users += 1;
    try {
      return await work(entry.part);
    } finally {
      entry.users -= 1;
      this.#shrink(this.max_open);
    }
  }

  /** Closes all. Idempotent. @throws what a part could not be closed for */
  async close(): Promise<void> {
    const parts = [...this.#entries.values()].map(({ part }) => part);
    this.#entries.clear();
    await Promise.all([...this.#closing, ...parts.map((part) => this.parts.close(part))]);
  }

  #shrink(most: number): void {
    for (const [pool, { part, users }] of this.#entries) {
      if (this.#entries.size <= most) return;
      if (users > 0) continue;
      this.#entries.delete(pool);
      // A connection that can't be closed in order is gone already.
      const closed: Promise<void> = this.parts
        .close(part)
        .then(
          () => undefined,
          () => undefined,
        )
        .finally(() => this.#closing.delete(closed));
      this.#closing.add(closed);
    }
  }
}
