import { type FieldError, type Job, type ResolvedJobSpec, ZerofleetError } from '../../../contracts/index.js';
import { fitOverrides, isTrainable, resolveSteps, type StepSources } from '../../../job-document/index.js';
import { keepSpec } from '../../../state/index.js';
import { codeOf } from '../../shared/errors.js';
import { type AttemptContext, emit, retryStorage, type TrainableJob } from './context.js';
import type { ResumePoint } from './load/load-point.js';

/**
 * Returns the job with its current document, whose epochs are replaced by the number of steps. The number is a function
 * of the document and the data, so that attempts on any workers find the same one; it is written once.
 * @throws ZerofleetError `validation_failed` when the document breaks a rule with this number of steps
 */
export async function trainableJob(ctx: AttemptContext, sources: StepSources): Promise<TrainableJob> {
  const { deps, lease } = ctx;
  for (;;) {
    const job = await lease.call((id) => deps.store.getJob(id));
    if (job === null) throw new ZerofleetError('job_not_found', `there is no job ${lease.jobId}`);
    if (isTrainable(job.spec)) return { ...job, spec: job.spec };
    const { epochs } = job.spec.train;
    const { spec, errors } = resolveSteps(job.spec, sources);
    if (errors.length > 0) throw refused(errors, sources);
    if (!(await replaceSpec(ctx, job, spec))) continue;
    const { steps } = spec.train;
    await emit(ctx, 'steps.resolved', { epochs, samples: sources.samples, steps });
  }
}

function refused(fields: FieldError[], { samples }: StepSources): ZerofleetError {
  const broken = fields.map(({ pointer, message }) => `${pointer}: ${message}`).join('; ');
  return new ZerofleetError('validation_failed', `with the ${samples} samples of the data, ${broken}`, {
    fields,
  });
}

/**
 * Returns the job with its current document. Users may change the overrides of future steps. If the ranks had passed
 * such a step, the document is updated to the step at which the change takes effect.
 * @param resume checkpoint from which the next ranks resume; null: no step is done
 * @throws as trainableJob()
 */
export async function currentJob(
  ctx: AttemptContext,
  resume: ResumePoint | null,
  sources: StepSources,
): Promise<TrainableJob> {
  for (;;) {
    const job = await trainableJob(ctx, sources);
    if (resume === null) return job;
    const { train } = job.spec;
    const { step, overrides: past } = resume.manifest;
    const overrides = fitOverrides(train.overrides, past, step);
    if (JSON.stringify(overrides) === JSON.stringify(train.overrides)) return job;
    const spec = { ...job.spec, train: { ...train, overrides } };
    if (await replaceSpec(ctx, job, spec)) await emit(ctx, 'overrides.moved', { step, overrides });
  }
}

/** Replaces the job's document. Returns false if the job was changed meanwhile. */
async function replaceSpec(ctx: AttemptContext, before: Job, spec: ResolvedJobSpec): Promise<boolean> {
  const { deps, lease } = ctx;
  const { requested_ranks } = before;
  try {
    const job = await lease.call(() =>
      deps.store.updateJob({ before, spec, requested_ranks, changed: ['train'] }),
    );
    await retryStorage(ctx, () => keepSpec(deps, job));
    return true;
  } catch (error) {
    if (codeOf(error) === 'version_mismatch') return false;
    throw error;
  }
}
