import type { PreemptionNotice } from './source.js';

/** Why an agent hands its jobs back. */
export type DepartureReason = 'worker_draining' | 'preempted';

/** That this agent is about to leave, and how much time there is: known to all of its attempts. */
export class Departure {
  private begun: { reason: DepartureReason; leaves_at: number | null } | null = null;

  /** The first reason stays. */
  begin(notice: PreemptionNotice | null): void {
    this.begun ??= notice
      ? { reason: 'preempted', leaves_at: notice.leaves_at }
      : { reason: 'worker_draining', leaves_at: null };
  }

  get reason(): DepartureReason {
    return this.begun?.reason ?? 'worker_draining';
  }

  /** Time until the machine is gone, in ms; null: nobody said. */
  get left_ms(): number | null {
    const leaves_at = this.begun?.leaves_at ?? null;
    return leaves_at === null ? null : leaves_at - Date.now();
  }
}
