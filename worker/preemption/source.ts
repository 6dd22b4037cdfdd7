/** That the machine will be taken away. */
export interface PreemptionNotice {
  /** What the cloud calls it, for logs and events. */
  cause: string;
  /** Unix time in ms at which it is gone; null: not said, but soon. */
  leaves_at: number | null;
}

/** Whoever knows beforehand that this machine will be taken away. SIGTERM needs none. */
export interface PreemptionSource {
  /** The first notice, or null when `signal` was aborted before there was one. Does not reject. */
  watch(signal: AbortSignal): Promise<PreemptionNotice | null>;
}
