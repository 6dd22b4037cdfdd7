/** Limits concurrent work per server, so that a slow one leaves room for others, and one that fails is only probed. */
export class ServerLimits {
  readonly #servers = new Map<string, { active: number; failing: boolean }>();

  /** @param limit of a server that answers */
  constructor(private readonly limit: number) {}

  /** Returns a function that ends the work and tells whether it succeeded; null when the server has enough work. */
  enter(url: string): ((succeeded: boolean) => void) | null {
    const server = this.#servers.get(url) ?? { active: 0, failing: false };
    if (server.active >= (server.failing ? 1 : this.limit)) return null;
    server.active += 1;
    this.#servers.set(url, server);
    return (succeeded) => {
      server.active -= 1;
      server.failing = !succeeded;
      if (server.active === 0 && succeeded) this.#servers.delete(url);
    };
  }
}
