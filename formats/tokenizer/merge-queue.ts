interface Merge {
  rank: number;
  /** Position of the left symbol of a pair. */
  position: number;
}

/** Upper bound of positions. */
const POSITION_BASE = 2 ** 26;

/** Binary heap of merges: lowest rank first, then leftmost. */
export class MergeQueue {
  private readonly heap: number[] = [];

  push({ rank, position }: Merge): void {
    const { heap } = this;
    const key = rank * POSITION_BASE + position;
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as number;
      if (above <= key) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = key;
  }

  pop(): Merge | null {
    const { heap } = this;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined) return null;
    if (heap.length > 0) this.sink(last);
    return { rank: Math.floor(top / POSITION_BASE), position: top % POSITION_BASE };
  }

  private sink(key: number): void {
    const { heap } = this;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && (heap[child + 1] as number) < (heap[child] as number)) child++;
      if (key <= (heap[child] as number)) break;
      heap[at] = heap[child] as number;
      at = child;
    }
    heap[at] = key;
  }
}
