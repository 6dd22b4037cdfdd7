/** Failing entries that are remembered. */
const KEPT = 1000;

/** Limits concurrent work by name, so that a slow server leaves room for others, and one that fails is only probed. */
export class ServerLimits {
  private readonly entries = new Map<string, { active: number; failing: boolean }>();

  /** @param limit of one whose work succeeds */
  constructor(private readonly limit: number) {}

  /**
   * Returns a function that ends the work and tells whether it succeeded; null when there is enough work of this name.
   */
  enter(name: string): ((succeeded: boolean) => void) | null {
    const entry = this.entries.get(name) ?? { active: 0, failing: false };
    if (entry.active >= (entry.failing ? 1 : this.limit)) return null;
    entry.active += 1;
    this.entries.set(name, entry);
    return (succeeded) => {
      entry.active -= 1;
      entry.failing = !succeeded;
      if (entry.active === 0 && succeeded) this.entries.delete(name);
      if (this.entries.size > KEPT) this.forgetOldest();
    };
  }

  /** Clients name the servers, so their number has a bound. */
  private forgetOldest(): void {
    for (const [name, { active }] of this.entries) if (active === 0) return void this.entries.delete(name);
  }
}
