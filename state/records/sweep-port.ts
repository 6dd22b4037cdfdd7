/** Queries of the object store's sweep to the records. */
export interface SweepGuard {
  /** Returns 'ready' when the records determine which objects are unused, otherwise the reason why they do not. */
  readyForSweep(): Promise<'ready' | 'empty' | 'restoring'>;
  /** Returns true to one of all servers that call it within `interval_ms`. */
  takeSweepTurn(interval_ms: number): Promise<boolean>;
}
