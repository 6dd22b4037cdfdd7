/** Checkpoints of a job in the shape of `fine_tuning.job.checkpoint`. */
import type { FineTuningJobCheckpoint } from 'openai/resources/fine-tuning/jobs/checkpoints';
import {
  type Checkpoint,
  type Job,
  type JobMetric,
  type Page,
  ZerofleetError,
} from '../../../contracts/index.js';
import { checkpointPosition, type JobStreams, metricsBetween } from '../../../state/index.js';
import { findCheckpoint } from '../../access/found.js';
import type { ProjectRecords } from '../../access/project-records.js';
import { isId } from '../ids.js';
import { VALIDATION_FILE } from '../labels.js';
import { fineTunedName } from '../models.js';
import { type ListParams, type PageQuery, secondsOf, unknownCursor } from '../pages.js';

/**
 * Returns the position of the checkpoint that `after` names. @throws Refusal if the job has no such checkpoint, or not
 * any more
 */
export async function afterCheckpoint(
  records: ProjectRecords,
  job: Job,
  { after }: ListParams,
): Promise<Pick<ListParams, 'after'>> {
  if (after === undefined) return {};
  if (!isId('checkpoint', after)) throw unknownCursor(after);
  const checkpoint = await findCheckpoint(records, after).catch((error: unknown) => {
    const isUnknown = error instanceof ZerofleetError && error.code === 'checkpoint_not_found';
    throw isUnknown ? unknownCursor(after) : error;
  });
  if (checkpoint.job_id !== job.id) throw unknownCursor(after);
  return { after: checkpointPosition(checkpoint) };
}

/** Reads a page of a job's checkpoints, newest first; `after` is a position of the list. */
export async function checkpointsPage(
  records: ProjectRecords,
  store: Pick<JobStreams, 'readSteps'>,
  job: Job,
  query: PageQuery,
): Promise<Page<FineTuningJobCheckpoint>> {
  const { data, next_cursor } = await records.listCheckpoints(job.id, query);
  return { data: await Promise.all(data.map((each) => ofCheckpoint(store, job, each))), next_cursor };
}

/** Adds the metrics of a checkpoint's step. */
async function ofCheckpoint(
  store: Pick<JobStreams, 'readSteps'>,
  job: Job,
  { id, step, committed_at, eval_losses = {} }: Checkpoint,
): Promise<FineTuningJobCheckpoint> {
  const { [VALIDATION_FILE]: validLoss } = eval_losses;
  // The client's types have losses only.
  const isRewarded = job.spec.train.objective?.type === 'grpo';
  let newest: JobMetric | null = null;
  for await (const metric of metricsBetween(store, job.id, { from: step, to: step })) newest = metric;
  const trainLoss = newest?.loss;
  return {
    id,
    object: 'fine_tuning.job.checkpoint',
    created_at: secondsOf(committed_at),
    fine_tuned_model_checkpoint: fineTunedName(job, id),
    fine_tuning_job_id: job.id,
    step_number: step,
    metrics: {
      step,
      ...(typeof trainLoss === 'number' && { train_loss: trainLoss }),
      ...(validLoss !== undefined && !isRewarded && { valid_loss: validLoss, full_valid_loss: validLoss }),
    },
  };
}
