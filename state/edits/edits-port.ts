import type { Checkpoint } from '../../contracts/index.js';

export interface CheckpointEdits {
  /**
   * Makes a checkpoint with a changed tensor the latest of a job that is paused or has ended. May be repeated.
   * @param epoch epoch of the job when the checkpoint `sourceId` was read
   * @throws `invalid_state` for a job in another state, or one that a worker has claimed since; `checkpoint_not_newest` when another
   *   checkpoint than `sourceId` is the latest; `job_not_found`
   */
  commitEdit(checkpoint: Checkpoint, source: { sourceId: string; epoch: number }): Promise<void>;
}
