import { ZerofleetError } from '../../contracts/index.js';

interface GateLimits {
  of_project: number;
  of_all: number;
}

/** Bounds requests in progress that each hold memory, of one project and of all. */
export class ProjectGate {
  private readonly running = new Map<string, number>();

  /** @param what the requests, in the plural, for messages */
  constructor(
    private readonly what: string,
    private readonly limits: GateLimits,
  ) {}

  /** @returns ends the request; idempotent @throws ZerofleetError `rate_limited` */
  begin(project: string): () => void {
    const own = this.running.get(project) ?? 0;
    const all = [...this.running.values()].reduce((sum, count) => sum + count, 0);
    if (own >= this.limits.of_project || all >= this.limits.of_all) {
      const message = `the server has ${own} ${this.what} of this project and ${all} in all in progress; try again when one is complete`;
      throw new ZerofleetError('rate_limited', message);
    }
    this.running.set(project, own + 1);
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      const left = (this.running.get(project) ?? 1) - 1;
      if (left === 0) this.running.delete(project);
      else this.running.set(project, left);
    };
  }
}
