/** Checkpoints of a job in the shape of `fine_tuning.job.checkpoint`. */
import type { FineTuningJobCheckpoint } from 'openai/resources/fine-tuning/jobs/checkpoints';
import type { Zerofleet } from '../../../client/index.js';
import type { Checkpoint, Job } from '../../../contracts/index.js';
import { VALIDATION_FILE } from '../labels.js';
import { fineTunedName } from '../models.js';
import { secondsOf } from '../pages.js';

/** The smallest number that the API accepts; a step has one. */
const MAX_METRICS = 16;

/** Adds the metrics of a checkpoint's step. */
export async function ofCheckpoint(
  api: Zerofleet,
  job: Job,
  { id, step, committed_at, eval_losses = {} }: Checkpoint,
): Promise<FineTuningJobCheckpoint> {
  const { [VALIDATION_FILE]: valid_loss } = eval_losses;
  const [metric] = await api.jobs.curve(job.id, MAX_METRICS, { from_step: step, to_step: step });
  const train_loss = metric?.loss;
  return {
    id,
    object: 'fine_tuning.job.checkpoint',
    created_at: secondsOf(committed_at),
    fine_tuned_model_checkpoint: fineTunedName(job, id),
    fine_tuning_job_id: job.id,
    step_number: step,
    metrics: {
      step,
      ...(typeof train_loss === 'number' && { train_loss }),
      ...(valid_loss !== undefined && { valid_loss, full_valid_loss: valid_loss }),
    },
  };
}
