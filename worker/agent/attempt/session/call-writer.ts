/** Writes the calls of a job in place of clients. */
export interface CallWriter {
  /** Begins, or continues with ranks that run the calls. @param onFailed called with an error that ends it */
  begin(onFailed: (error: unknown) => void): void;
  /** Returns metrics of a step that the ranks do not know; null if they are unknown. */
  metricsOf(step: number): Record<string, number> | null;
  /** Whether an evaluation follows a step, with a `save_state` behind it. */
  isEvaluated(step: number): boolean;
  /** Returns the figures of the evaluation after a step by name; none before it, or without one. */
  figuresAt(step: number): Promise<Readonly<Record<string, number>>>;
}
