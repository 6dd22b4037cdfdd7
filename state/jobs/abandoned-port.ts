/** Sample requests that nobody waits for any more. */
export interface AbandonedSamples {
  /** @param entry id of the request's queue entry */
  abandonSample(entry: string): Promise<void>;
  /** Returns which of the requests were abandoned. */
  abandonedSamples(entries: readonly string[]): Promise<Set<string>>;
}
