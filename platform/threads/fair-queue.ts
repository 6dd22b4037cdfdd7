/** Queue with round robin between owners. Items of one owner keep their order. */
export class FairQueue<T> {
  /** Items by owner, in the order of turns. */
  private readonly waiting = new Map<string, T[]>();
  /** Items of an owner that are taken and not released. */
  private readonly taken = new Map<string, number>();

  /** @param share items that an owner may have taken at once, at least 1; the owner '' has no bound */
  constructor(private readonly share = Number.POSITIVE_INFINITY) {}

  get isEmpty(): boolean {
    return this.waiting.size === 0;
  }

  add(owner: string, item: T): void {
    const items = this.waiting.get(owner);
    if (items === undefined) this.waiting.set(owner, [item]);
    else items.push(item);
  }

  /** Removes the next item of the next owner within its share, until release(); null when there is none. */
  take(): { owner: string; item: T } | null {
    for (const [owner, items] of this.waiting) {
      const taken = this.taken.get(owner) ?? 0;
      if (owner !== '' && taken >= Math.max(1, this.share)) continue;
      const item = items.shift() as T;
      this.waiting.delete(owner);
      if (items.length > 0) this.waiting.set(owner, items);
      this.taken.set(owner, taken + 1);
      return { owner, item };
    }
    return null;
  }

  /** Ends what take() returned. */
  release(owner: string): void {
    const taken = (this.taken.get(owner) ?? 0) - 1;
    if (taken === 0) this.taken.delete(owner);
    else this.taken.set(owner, taken);
  }

  /** Removes everything that is not taken. */
  clear(): T[] {
    const items = [...this.waiting.values()].flat();
    this.waiting.clear();
    return items;
  }
}
