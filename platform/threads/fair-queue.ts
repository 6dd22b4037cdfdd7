/** Queue with round robin between owners. Items of one owner keep their order. */
export class FairQueue<T> {
  /** Items by owner, in the order of turns. */
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
