import type { PreemptionNotice } from './source.js';

/** Reason for which an agent returns its jobs. */
type DrainReason = 'worker_draining' | 'preempted';

/** Drain of this agent, with the time that is left, shared by all of its attempts. */
export class Drain {
  /** Longest time in which this agent expected to save one of its jobs, in ms; null before the first save. */
  longestSaveMs: number | null = null;
  private begun: { reason: DrainReason; terminates_at: number | null } | null = null;

  /** Starts the drain; the first reason stays. */
  begin(notice: PreemptionNotice | null): void {
    this.begun ??= notice
      ? { reason: 'preempted', terminates_at: notice.terminates_at }
      : { reason: 'worker_draining', terminates_at: null };
  }

  /** Records that a save is expected to take this long. */
  expectSave(ms: number): void {
    this.longestSaveMs = Math.max(this.longestSaveMs ?? 0, ms);
  }

  get reason(): DrainReason {
    return this.begun?.reason ?? 'worker_draining';
  }

  /** Time until the machine terminates, in ms; null if unknown. */
  get leftMs(): number | null {
    const terminatesAt = this.begun?.terminates_at ?? null;
    return terminatesAt === null ? null : terminatesAt - Date.now();
  }
}
