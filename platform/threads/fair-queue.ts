/** What waits, by owner: the owners take turns, whatever one of them has put in. What one owner has put in keeps its order. */
export class FairQueue<T> {
  /** Of owners that have something waiting; the next one to have its turn is the first. */
  private readonly waiting = new Map<string, T[]>();

  get isEmpty(): boolean {
    return this.waiting.size === 0;
  }

  add(owner: string, item: T): void {
    const items = this.waiting.get(owner);
    if (items === undefined) this.waiting.set(owner, [item]);
    else items.push(item);
  }

  /** Removes the next item of the next owner that `mayTake` accepts; null when there is none. */
  take(mayTake: (owner: string) => boolean = () => true): { owner: string; item: T } | null {
    for (const [owner, items] of this.waiting) {
      if (!mayTake(owner)) continue;
      const item = items.shift() as T;
      this.waiting.delete(owner);
      if (items.length > 0) this.waiting.set(owner, items);
      return { owner, item };
    }
    return null;
  }

  /** Removes everything. */
  clear(): T[] {
    const items = [...this.waiting.values()].flat();
    this.waiting.clear();
    return items;
  }
}
