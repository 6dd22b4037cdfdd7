/** Runs work with the same key one after the other. */
export class Turns {
  private readonly last = new Map<string, Promise<unknown>>();

  /** Waits for the work of this key that began before, then runs `work`. @throws errors of `work` */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = follow(this.last.get(key), work);
    this.last.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.last.get(key) === turn) this.last.delete(key);
    }
  }
}

async function follow<T>(before: Promise<unknown> | undefined, work: () => Promise<T>): Promise<T> {
  await before?.catch(() => undefined);
  return work();
}
