/** What the sweep of the object store asks of the records. */
export interface SweepGuard {
  /** Whether the records can tell what is not needed; else why they can't. */
  readyForSweep(): Promise<'ready' | 'empty' | 'restoring'>;
  /** True for one of all servers that ask in `interval_ms`. */
  takeSweepTurn(interval_ms: number): Promise<boolean>;
}
