import type { Desired } from '../../platform/job-store/port.js';

/** Why an attempt should end before its training does, the most pressing last. */
export type StopReason = 'drain' | 'pause' | 'cancel';

/** What people and the machine want of one attempt: the job store says pause or cancel, SIGTERM says drain. */
export class StopRequests {
  private desired: Desired = 'run';
  private draining = false;
  private readonly listeners = new Set<(reason: StopReason) => void>();

  /** The most pressing reason to stop, or null. */
  get current(): StopReason | null {
    if (this.desired !== 'run') return this.desired;
    return this.draining ? 'drain' : null;
  }

  setDesired(desired: Desired): void {
    this.change(() => {
      // A cancellation is for ever; a late message of the pause before it must not weaken it.
      if (this.desired !== 'cancel') this.desired = desired;
    });
  }

  drain(): void {
    this.change(() => {
      this.draining = true;
    });
  }

  /** Called with each new reason, and at once when there is one already. Returns the unsubscription. */
  watch(listener: (reason: StopReason) => void): () => void {
    this.listeners.add(listener);
    if (this.current) listener(this.current);
    return () => this.listeners.delete(listener);
  }

  private change(apply: () => void): void {
    const before = this.current;
    apply();
    const now = this.current;
    if (now && now !== before) for (const listener of [...this.listeners]) listener(now);
  }
}
