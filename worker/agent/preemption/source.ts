/** Notice that the machine will be terminated. */
export interface PreemptionNotice {
  /** The provider's name of the cause, for logs and events. */
  cause: string;
  /** Unix time of the termination in ms; null: unknown, but soon. */
  terminates_at: number | null;
}

/** Source of preemption notices for this machine. SIGTERM needs none. */
export interface PreemptionSource {
  /** Resolves with the first notice, or with null when `signal` is aborted before. Does not reject. */
  watch(signal: AbortSignal): Promise<PreemptionNotice | null>;
}
