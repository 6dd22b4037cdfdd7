import type { Desired } from '../../state/index.js';

/** Why a generation of ranks should end before its training does, the most pressing last. */
const REASONS = ['update', 'resize', 'drain', 'preempt', 'pause', 'cancel'] as const;
export type StopReason = (typeof REASONS)[number];

/** Reasons that end the attempt as well: after any other one it goes on with new ranks. */
export type EndReason = Exclude<StopReason, 'update' | 'resize'>;

/** What people and machines want of one attempt. Each reason comes from somebody else, and they may come in any order. */
export class StopRequests {
  private readonly reasons = new Set<StopReason>();
  private save_requested = 0;
  private save_answered = 0;
  private readonly save_listeners = new Set<() => void>();
  private readonly listeners = new Set<(reason: StopReason) => void>();

  /** The most pressing reason to stop, or null. */
  get current(): StopReason | null {
    return REASONS.findLast((reason) => this.reasons.has(reason)) ?? null;
  }

  /** Number of the newest request to save and go on that no checkpoint has answered; 0 for none. */
  get save_request(): number {
    return this.save_requested > this.save_answered ? this.save_requested : 0;
  }

  /** A checkpoint answers requests up to this one. */
  answerSave(request: number): void {
    this.save_answered = Math.max(this.save_answered, request);
  }

  setSaveRequest(request: number): void {
    if (request <= this.save_requested) return;
    this.save_requested = request;
    for (const listener of [...this.save_listeners]) listener();
  }

  /** Called with each new request. Returns the unsubscription. */
  watchSaveRequests(listener: () => void): () => void {
    this.save_listeners.add(listener);
    return () => this.save_listeners.delete(listener);
  }

  /** The most pressing reason to end the attempt, or null. */
  get ending(): EndReason | null {
    const { current } = this;
    return current === 'update' || current === 'resize' ? null : current;
  }

  /** What the job store says that people want. */
  setDesired(desired: Desired): void {
    // A cancellation is for ever; a late message of the pause before it must not weaken it.
    if (desired === 'run') this.withdraw('pause');
    else this.request(desired);
  }

  request(reason: StopReason): void {
    const before = this.current;
    this.reasons.add(reason);
    const now = this.current;
    if (now && now !== before) for (const listener of [...this.listeners]) listener(now);
  }

  /** Takes a reason back. Ranks that were told already stop nevertheless. */
  withdraw(reason: Exclude<StopReason, 'cancel'>): void {
    this.reasons.delete(reason);
  }

  /** Called with each new reason, and at once when there is one already. Returns the unsubscription. */
  watch(listener: (reason: StopReason) => void): () => void {
    this.listeners.add(listener);
    if (this.current) listener(this.current);
    return () => this.listeners.delete(listener);
  }
}
