/** Writes the calls of a job in place of clients. */
export interface CallWriter {
  /** Begins, or continues with ranks that run the calls. @param onFailed called with an error that ends it */
  begin(onFailed: (error: unknown) => void): void;
  /** Returns metrics of a step that the ranks do not know; null if they are unknown. */
  metricsOf(step: number): Record<string, number> | null;
  /** Returns the figures of the evaluation after a step by name, none without one; null while they are unknown. */
  figuresAt(step: number): Readonly<Record<string, number>> | null;
}
