import { setTimeout as sleep } from 'node:timers/promises';
import type { Constraint } from '../../../formats/json-grammar/constraint.js';
import type { TokenMask } from '../../../formats/json-grammar/vocabulary.js';
import type { TokenMasks } from './token-masks.js';

/**
 * Time for which a step waits for masks. Usually they come within a tenth of it, and their sequences take part in the
 * step; later ones take part in the next one.
 */
const GRACE_MS = 5;

interface Sequence {
  constraint: Constraint;
  masks: Pick<TokenMasks, 'next'>;
  tokens: number[];
}

interface Listener {
  /** Gets the tokens that may come next. */
  onMask(sequence: number, mask: TokenMask): void;
  /** Called when the answer is complete. */
  onComplete(sequence: number): void;
  onError(sequence: number, error: unknown): void;
}

/** Sequences whose next token waits for a mask. */
export class ConstrainedSequences {
  private readonly sequences = new Map<number, Sequence>();
  private readonly pending = new Map<number, Promise<void>>();
  /** Ends a wait. */
  private wake = () => {};

  constructor(private readonly listener: Listener) {}

  /** Sequences that wait. */
  get numWaiting(): number {
    return this.pending.size;
  }

  has(sequence: number): boolean {
    return this.sequences.has(sequence);
  }

  add(sequence: number, parts: Omit<Sequence, 'tokens'>): void {
    this.sequences.set(sequence, { ...parts, tokens: [] });
    this.request(sequence);
  }

  push(sequence: number, token: number): void {
    this.sequences.get(sequence)?.tokens.push(token);
    this.request(sequence);
  }

  /** Forgets a sequence. Ignores an unknown one. */
  remove(sequence: number): void {
    this.sequences.delete(sequence);
    this.pending.delete(sequence);
  }

  /** Ends a wait for masks: another sequence can go on. */
  interrupt(): void {
    this.wake();
  }

  /** Waits for all masks, but not longer than the grace; with `until_one`, for at least one of them. */
  async settled({ until_one }: { until_one: boolean }): Promise<void> {
    const pending = [...this.pending.values()];
    if (pending.length === 0) return;
    const woken = new Promise<void>((resolve) => {
      this.wake = resolve;
    });
    if (until_one) await Promise.race([...pending, woken]);
    await Promise.race([Promise.all(pending), woken, sleep(GRACE_MS)]);
  }

  private request(id: number): void {
    const sequence = this.sequences.get(id);
    if (sequence !== undefined) this.pending.set(id, this.next(id, sequence));
  }

  private async next(id: number, { masks, constraint, tokens }: Sequence): Promise<void> {
    let notify: () => void;
    try {
      const { mask } = await masks.next({ sequence: id, constraint, tokens: Int32Array.from(tokens) });
      notify = () => (mask === null ? this.listener.onComplete(id) : this.listener.onMask(id, mask));
    } catch (error) {
      notify = () => this.listener.onError(id, error);
    }
    if (!this.sequences.has(id)) return;
    this.pending.delete(id);
    notify();
  }
}
