/** Holder name of downloads. The end of a download is unknown, so these holds only expire. */
export const DOWNLOAD_HOLDER = 'download';

/**
 * Holds on checkpoints that another job reads, or that are read while their own job still trains. Neither the retention rule nor a user
 * removes a held checkpoint (`checkpoint_held`). A job holds its initial checkpoint from its creation until it has a checkpoint of its
 * own or ends.
 */
export interface CheckpointHolds {
  /**
   * Holds a checkpoint for a day by default; a repeat extends the hold.
   * @param holder `DOWNLOAD_HOLDER` blocks only the retention rule, not a removal by a user
   * @returns false when the checkpoint does not exist
   */
  holdCheckpoint(checkpointId: string, holder: string, ttlMs?: number): Promise<boolean>;
  /** Idempotent. */
  letGoCheckpoint(checkpointId: string, holder: string): Promise<void>;
}
