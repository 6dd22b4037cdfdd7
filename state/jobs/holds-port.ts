/** Whoever downloads the files of a checkpoint: nobody can tell when that is done, so these holds end by themselves alone. */
export const DOWNLOAD_HOLDER = 'download';

/**
 * Who reads a checkpoint of another job, or of one that trains on: while it is held, neither the retention rule nor a person removes
 * it (`checkpoint_held`). A job holds what it begins with from its creation on, until it has a checkpoint of its own or ends.
 */
export interface CheckpointHolds {
  /**
   * Holds it for a day unless said otherwise, or longer when it is repeated.
   * @param holder `DOWNLOAD_HOLDER` keeps only the retention rule off: a person who removes the checkpoint means it
   * @returns false when there is none of this id any more
   */
  holdCheckpoint(checkpointId: string, holder: string, ttlMs?: number): Promise<boolean>;
  /** Idempotent. */
  letGoCheckpoint(checkpointId: string, holder: string): Promise<void>;
}
