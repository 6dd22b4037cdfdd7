import type { LaunchProblem } from './port.js';

export type Problem = Pick<LaunchProblem, 'code' | 'message'>;

const FIRST_MS = 10_000;
const MAX_MS = 900_000;

interface Launches {
  failures: number;
  failed_at: number;
  /** Time until which none is tried. */
  paused_until: number;
  /** Machines that the type should have. */
  wanted: number;
  /** Reason of the last failure; null after a success. */
  problem: Problem | null;
}

const NONE: Launches = { failures: 0, failed_at: 0, paused_until: 0, wanted: 0, problem: null };

/**
 * Exponential backoff of the launches of each machine type, for a source that does not retry a launch itself. The
 * requested number of a failing type is kept until one of its machines runs.
 */
export class LaunchBackoff {
  private readonly types = new Map<string, Launches>();

  /** @param clock Unix time in ms */
  constructor(private readonly clock: () => number) {}

  want(type: string, wanted: number): void {
    this.launchesOf(type).wanted = wanted;
  }

  /** Records that the source refused a machine, or that one ended at its start. */
  failed(type: string, problem: Problem): void {
    const launches = this.launchesOf(type);
    launches.problem = problem;
    // Several that were requested together fail together.
    if (this.isPaused(type)) return;
    launches.paused_until = this.clock() + Math.min(MAX_MS, FIRST_MS * 2 ** launches.failures);
    launches.failures += 1;
    launches.failed_at = this.clock();
  }

  /** Records that a machine runs. Earlier ones than the last failure prove nothing. */
  succeeded(type: string, startedAt: number): void {
    const launches = this.launchesOf(type);
    if (startedAt >= launches.failed_at)
      Object.assign(launches, { failures: 0, paused_until: 0, problem: null });
  }

  /** Returns the number of machines that a failing type should have; 0 for others. */
  owed(type: string): number {
    const { failures, wanted } = this.launchesOf(type);
    return failures > 0 ? wanted : 0;
  }

  problem(type: string): Problem | null {
    return this.launchesOf(type).problem;
  }

  isPaused(type: string): boolean {
    return this.clock() < this.launchesOf(type).paused_until;
  }

  private launchesOf(type: string): Launches {
    const launches = this.types.get(type) ?? { ...NONE };
    this.types.set(type, launches);
    return launches;
  }
}
