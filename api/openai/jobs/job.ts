/** Jobs in the shape of `fine_tuning.job`. */
import type { FineTuningJob } from 'openai/resources/fine-tuning/jobs/jobs';
import type { StringCheckGrader } from 'openai/resources/graders/grader-models';
import { isFinal, type Job, type JobState } from '../../../contracts/index.js';
import { trainingDatasetsOf } from '../../../job-document/index.js';
import { LABELS, VALIDATION_FILE } from '../labels.js';
import { fineTunedName } from '../models.js';
import { secondsOf } from '../pages.js';
import { DEFAULT_GROUP } from './create.js';
import { resultsId } from './results.js';

/**
 * A paused job is `queued`: the translated API's type has no other state that it could continue from. A job that is
 * being cancelled is `cancelled`: that is what the client's call of `cancel` answers.
 */
const STATUS: Readonly<Record<JobState, FineTuningJob['status']>> = {
  queued: 'queued',
  provisioning: 'queued',
  starting: 'validating_files',
  running: 'running',
  recovering: 'running',
  pausing: 'running',
  paused: 'queued',
  cancelling: 'cancelled',
  cancelled: 'cancelled',
  succeeded: 'succeeded',
  failed: 'failed',
};

export function fineTuningJob(job: Job): FineTuningJob {
  const { id, spec, labels, state, failure, progress } = job;
  const ended = isFinal(state);
  const eta = state === 'running' ? progress.eta_seconds : null;
  const reserved: readonly string[] = Object.values(LABELS);
  const metadata = Object.entries(labels).filter(([name]) => !reserved.includes(name));
  const name = fineTunedName(job);
  return {
    id,
    object: 'fine_tuning.job',
    created_at: secondsOf(job.created_at),
    finished_at: ended ? secondsOf(job.state_history.at(-1)?.at ?? job.updated_at) : null,
    estimated_finish: eta === null ? null : Math.ceil(Date.now() / 1000 + eta),
    model: labels[LABELS.model] ?? name.split(':')[1] ?? '',
    fine_tuned_model: state === 'succeeded' ? name : null,
    organization_id: spec.project,
    status: STATUS[state],
    training_file: trainingDatasetsOf(spec.data)[0]?.dataset ?? '',
    validation_file:
      spec.train.evaluation?.datasets.find((each) => each.name === VALIDATION_FILE)?.dataset ?? null,
    result_files: ended && progress.step > 0 ? [resultsId(id)] : [],
    trained_tokens: ended ? progress.tokens : null,
    error: failure === null ? null : { code: failure.code, message: failure.message, param: null },
    seed: spec.train.seed,
    integrations: [],
    metadata: Object.fromEntries(metadata),
    ...methodOf(job),
  };
}

function methodOf({ spec, labels }: Job): Pick<FineTuningJob, 'hyperparameters' | 'method'> {
  const { objective, global_batch_size, epochs } = spec.train;
  const number = (label: string) => Number(labels[label] ?? Number.NaN);
  const [nEpochs, multiplier] = [number(LABELS.epochs), number(LABELS.multiplier)];
  const hyperparameters = {
    n_epochs: Number.isNaN(nEpochs) ? (epochs ?? ('auto' as const)) : nEpochs,
    batch_size: global_batch_size,
    learning_rate_multiplier: Number.isNaN(multiplier) ? ('auto' as const) : multiplier,
  };
  if (objective?.type === 'grpo') {
    const { prompts_per_step, group_size } = objective;
    const { evaluation } = spec.train;
    // The client's types have the graders of the translated API only.
    const grader = objective.grader as object as StringCheckGrader;
    const all = {
      ...hyperparameters,
      batch_size: prompts_per_step,
      compute_multiplier: group_size / DEFAULT_GROUP,
      ...(evaluation && { eval_interval: evaluation.every_steps, eval_samples: 1 }),
    };
    return {
      hyperparameters: all,
      method: { type: 'reinforcement', reinforcement: { grader, hyperparameters: all } },
    };
  }
  if (objective?.type !== 'dpo')
    return { hyperparameters, method: { type: 'supervised', supervised: { hyperparameters } } };
  const { beta } = objective;
  return { hyperparameters, method: { type: 'dpo', dpo: { hyperparameters: { ...hyperparameters, beta } } } };
}
