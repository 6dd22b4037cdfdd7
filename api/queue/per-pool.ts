interface Entry<T> {
  part: T;
  users: number;
}

/** Any name may be requested as a pool, so the number of open connections is bounded. */
const MAX_OPEN = 64;

/** Cache of one resource per pool, such as a queue with its connections: created on use, least recently used ones are closed. */
export class PerPool<T> {
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry<T>>();
  readonly #closing = new Set<Promise<void>>();

  constructor(
    private readonly parts: { open(pool: string): T; close(part: T): Promise<unknown> },
    private readonly max_open = MAX_OPEN,
  ) {}

  /** Keeps it open during `work`. */
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

  /** Closes all. Idempotent. @throws the error of a part that could not be closed */
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
      // A connection that cannot be closed properly is gone already.
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
