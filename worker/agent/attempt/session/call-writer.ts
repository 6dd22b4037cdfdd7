/** Writes the calls of a job in place of clients. */
export interface CallWriter {
  /** Begins, or continues with ranks that run the calls. @param onFailed called with an error that ends it */
  begin(onFailed: (error: unknown) => void): void;
  /** Returns metrics of a step that the ranks do not know; null if they are unknown. */
  metricsOf(step: number): Record<string, number> | null;
}
