import type { Desired } from '../../../state/index.js';

/** Reasons for which a generation of ranks stops before its training ends, in order of rising urgency. */
const REASONS = ['update', 'resize', 'idle', 'drain', 'preempt', 'pause', 'cancel'] as const;
export type StopReason = (typeof REASONS)[number];

/** Reasons that end the attempt as well. After the others it continues with new ranks. */
export type EndReason = Exclude<StopReason, 'update' | 'resize'>;

/** Pending stop and save requests of one attempt. Reasons are independent and may come in any order. */
export class StopRequests {
  private readonly reasons = new Set<StopReason>();
  private saveRequested = 0;
  private saveCompleted = 0;
  private readonly saveListeners = new Set<() => void>();
  private readonly listeners = new Set<(reason: StopReason) => void>();

  /** The most urgent reason to stop, or null. */
  get current(): StopReason | null {
    return REASONS.findLast((reason) => this.reasons.has(reason)) ?? null;
  }

  /** Number of the newest save request without a checkpoint; 0 for none. */
  get saveRequest(): number {
    return this.saveRequested > this.saveCompleted ? this.saveRequested : 0;
  }

  /** Marks the requests up to this number as answered by a checkpoint. */
  answerSave(request: number): void {
    this.saveCompleted = Math.max(this.saveCompleted, request);
  }

  setSaveRequest(request: number): void {
    if (request <= this.saveRequested) return;
    this.saveRequested = request;
    for (const listener of [...this.saveListeners]) listener();
  }

  /** Calls the listener with each new request. Returns the unsubscription. */
  watchSaveRequests(listener: () => void): () => void {
    this.saveListeners.add(listener);
    return () => this.saveListeners.delete(listener);
  }

  /** The most urgent reason to end the attempt, or null. */
  get ending(): EndReason | null {
    const { current } = this;
    return current === 'update' || current === 'resize' ? null : current;
  }

  /** Applies the desired state of the job store. */
  setDesired(desired: Desired): void {
    // A cancellation is final; a late message of an earlier pause must not undo it.
    if (desired === 'run') this.withdraw('pause');
    else this.request(desired);
  }

  request(reason: StopReason): void {
    const before = this.current;
    this.reasons.add(reason);
    const now = this.current;
    if (now && now !== before) for (const listener of [...this.listeners]) listener(now);
  }

  /** Withdraws a reason. Ranks that already received it stop nevertheless. */
  withdraw(reason: Exclude<StopReason, 'cancel'>): void {
    this.reasons.delete(reason);
  }

  /** Calls the listener with each new reason, and at once with a pending one. Returns the unsubscription. */
  watch(listener: (reason: StopReason) => void): () => void {
    this.listeners.add(listener);
    if (this.current) listener(this.current);
    return () => this.listeners.delete(listener);
  }
}
