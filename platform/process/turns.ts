/** Runs work with the same key one after the other. */
export class Turns {
  private readonly last = new Map<string, { turn: Promise<unknown>; count: number }>();

  /**
   * @param most work of a key that runs or waits
   * @param refusal error of more
   */
  constructor(
    private readonly most: number,
    private readonly refusal: () => Error,
  ) {}

  /** Waits for the work of this key that began before, then runs `work`. @throws the refusal; errors of `work` */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const queue = this.last.get(key) ?? { turn: Promise.resolve(), count: 0 };
    if (queue.count >= this.most) throw this.refusal();
    const turn = follow(queue.turn, work);
    this.last.set(key, queue);
    queue.turn = turn;
    queue.count += 1;
    try {
      return await turn;
    } finally {
      queue.count -= 1;
      if (queue.count === 0) this.last.delete(key);
    }
  }
}

async function follow<T>(before: Promise<unknown>, work: () => Promise<T>): Promise<T> {
  await before.catch(() => undefined);
  return work();
}
