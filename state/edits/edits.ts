import type { Checkpoint } from '../../contracts/index.js';
import { nowText, type StoreContext } from '../core/context.js';

export type CheckpointEdits = ReturnType<typeof checkpointEdits>;

export function checkpointEdits({ commands }: StoreContext) {
  return {
    /**
     * Makes a checkpoint with a changed tensor the latest of a job that is paused or has ended. May be
     * repeated.
     * @param epoch epoch of the job when the checkpoint `sourceId` was read
     * @throws `invalid_state` for a job in another state, or one that a worker has claimed since;
     *   `checkpoint_not_newest` when another checkpoint than `sourceId` is the latest; `job_not_found`
     */
    async commitEdit(
      checkpoint: Checkpoint,
      { sourceId, epoch }: { sourceId: string; epoch: number },
    ): Promise<void> {
      const { id, job_id, step, state_digest } = checkpoint;
      await commands.run('commit_edit', {
        job_id,
        epoch,
        source_id: sourceId,
        checkpoint_id: id,
        checkpoint: JSON.stringify(checkpoint),
        ref: JSON.stringify({ id, step, state_digest }),
        at: nowText(),
      });
    },
  };
}
