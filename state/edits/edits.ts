import { nowText, type StoreContext } from '../core/context.js';
import type { CheckpointEdits } from './edits-port.js';

export function checkpointEdits({ commands }: StoreContext): CheckpointEdits {
  return {
    async commitEdit(checkpoint, { sourceId, epoch }) {
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
