import { type Job, ZerofleetError } from '../../contracts/index.js';
import { replaceSpec } from '../../control/recovery/documents.js';
import { fitOverrides } from '../../spec/index.js';
import { codeOf } from '../common/errors.js';
import { type AttemptContext, emit, retryStorage } from './context.js';
import type { ResumePoint } from './load/load-point.js';

/**
 * Returns the job with its current document. Users may change the overrides of future steps. If the ranks had passed such a step, the
 * document is updated to the step at which the change takes effect.
 * @param resume checkpoint from which the next ranks resume; null: no step is done
 */
export async function currentJob(ctx: AttemptContext, resume: ResumePoint | null): Promise<Job> {
  const { deps, lease } = ctx;
  for (;;) {
    const job = await lease.call((id) => deps.store.getJob(id));
    if (job === null) throw new ZerofleetError('job_not_found', `there is no job ${lease.job_id}`);
    if (resume === null) return job;
    const { train } = job.spec;
    const { step, overrides: past } = resume.manifest;
    const overrides = fitOverrides(train.overrides, past, step);
    if (JSON.stringify(overrides) === JSON.stringify(train.overrides)) return job;
    const fitted = await replaceOverrides(ctx, job, overrides);
    if (fitted === null) continue;
    await emit(ctx, 'overrides.moved', { step, overrides });
    return fitted;
  }
}

/** Returns null if the job was changed meanwhile. */
async function replaceOverrides(
  ctx: AttemptContext,
  before: Job,
  overrides: Job['spec']['train']['overrides'],
): Promise<Job | null> {
  const { deps, lease } = ctx;
  const spec = { ...before.spec, train: { ...before.spec.train, overrides } };
  const { requested_ranks } = before;
  try {
    const job = await lease.call(() =>
      deps.store.updateJob({ before, spec, requested_ranks, changed: ['train'] }),
    );
    await retryStorage(ctx, () => replaceSpec(deps.objects, job.id, spec));
    return job;
  } catch (error) {
    if (codeOf(error) === 'version_mismatch') return null;
    throw error;
  }
}
