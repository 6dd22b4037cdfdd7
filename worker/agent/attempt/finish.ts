import { epochOf } from '../../../contracts/execution.js';
import type { Job, JobExport, TrainableJobSpec } from '../../../contracts/index.js';
import { exportPrefix } from '../../../formats/checkpoint/layout.js';
import type { Manifest } from '../../../formats/checkpoint/manifest.js';
import { hasStoppedEarly, takesCalls } from '../../../job-document/index.js';
import { keepDesired, putResult, type ReleaseOptions, type ResultDocument } from '../../../state/index.js';
import { retryTransient } from '../../shared/errors.js';
import { putEventFile } from '../../tasks/export/event-file.js';
import { runTask } from '../supervisor/task-runner.js';
import {
  type AttemptContext,
  emit,
  flushReports,
  type GenerationContext,
  retryStorage,
  type TrainableJob,
} from './context.js';
import { type AttemptError, describeError } from './failure.js';
import type { JobCheckpoints } from './job-checkpoints.js';
import type { NewestPoint, ResumePoint } from './load/load-point.js';

/**
 * Returns whether no step is left to train after a checkpoint.
 * @param finishedStep last step of a job that takes calls, which its `finish` decides; null while it is unknown
 */
export function isComplete(
  spec: TrainableJobSpec,
  { manifest }: ResumePoint,
  finishedStep: number | null,
): boolean {
  const last = takesCalls(spec.train) ? finishedStep : spec.train.steps;
  return manifest.step === last || isEarly(spec, manifest);
}

function isEarly(spec: TrainableJobSpec, { step, early_stopping }: Manifest): boolean {
  return step < (spec.train.steps ?? 0) && hasStoppedEarly(early_stopping, spec);
}

/**
 * Exports the weights of the last or the best checkpoint. Returns null when it is damaged: the job continues from an
 * earlier one. Safe to repeat.
 */
export async function exportWeights(
  ctx: GenerationContext,
  checkpoints: JobCheckpoints,
  last: NewestPoint,
  signal: AbortSignal,
): Promise<JobExport | null> {
  const { spec } = ctx.job;
  if (isEarly(spec, last.manifest)) {
    const { step, early_stopping } = last.manifest;
    const { metric } = spec.train.early_stopping ?? {};
    await emit(ctx, 'training.stopped_early', { step, metric, ...early_stopping });
  }
  const exported = spec.export.checkpoint === 'best' ? last.best : last;
  try {
    return await runExport(ctx, exported, signal);
  } catch (error) {
    if (!(await checkpoints.isDamaged(exported, error))) throw error;
    await checkpoints.reject(exported, describeError(error));
    return null;
  }
}

async function runExport(
  ctx: GenerationContext,
  { checkpoint, prefix: source }: ResumePoint,
  signal: AbortSignal,
): Promise<JobExport> {
  const { deps, job, log, logs, session } = ctx;
  await flushReports(ctx);
  const { format, dtype, weights, tensorboard } = job.spec.export;
  logs.message(
    `training is complete; exporting the ${weights} weights of step ${checkpoint.step} as ${format}, ${dtype}`,
  );
  const prefix = exportPrefix(job.id, checkpoint.step);
  const exported = await runTask(
    deps.processes,
    {
      kind: 'export',
      object_store: deps.object_store,
      spec: job.spec,
      checkpoint: source,
      format,
      dtype,
      weights,
      prefix,
      retry: deps.timing.storage,
    },
    { signal, session, log },
  );
  const { step } = checkpoint;
  const more = tensorboard ? await putEventFile(deps, job, { prefix, step }, deps.timing.storage) : [];
  const files = [...exported.files, ...more];
  logs.message(`exported ${files.map(({ name }) => name).join(', ')} to ${exported.prefix}`);
  return { checkpoint_id: checkpoint.id, step, ...exported, files };
}

/** Writes the result and finishes the job. Safe to repeat. */
export async function succeed(
  ctx: AttemptContext & { job: TrainableJob },
  last: ResumePoint,
  exported: JobExport,
): Promise<void> {
  const { deps, job, lease, logs } = ctx;
  const reason = isEarly(job.spec, last.manifest) ? 'early_stopping' : 'completed';
  const result: ResultDocument = {
    ...(await resultBase(ctx)),
    state: 'succeeded',
    reason,
    step: last.checkpoint.step,
    state_digest: last.checkpoint.state_digest,
    checkpoint: last.checkpoint.id,
    export: exported,
    failure: null,
  };
  await retryStorage(ctx, () => putResult(deps.objects, result));
  await logs.flush();
  await lease.call((id, execution) =>
    deps.store.finishJob(id, execution, 'succeeded', { reason, export: exported }),
  );
}

/** Cancels the job. Its checkpoints stay. */
export async function cancel(ctx: AttemptContext): Promise<void> {
  const { deps, lease } = ctx;
  const cancelled = await lease.call((id, execution) =>
    deps.store.finishJob(id, execution, 'cancelled', { reason: 'user_request' }),
  );
  await keepLimit(ctx, cancelled);
}

export type Handover = Partial<ReleaseOptions> & { reason: string };

/** Returns the job, to its queue by default. */
export async function release(
  ctx: AttemptContext,
  { to = 'queued', reason, ...more }: Handover,
): Promise<void> {
  const { deps, lease, logs } = ctx;
  logs.message(`${to === 'paused' ? 'paused' : 'returned to the queue'}: ${reason}`);
  await flushReports(ctx);
  const released = await lease.call((id, execution) =>
    deps.store.releaseAttempt(id, execution, { to, reason, ...more }),
  );
  if (more.preempted) deps.metrics.preempted(released.reason ?? reason);
  await keepLimit(ctx, released);
}

/**
 * Stores the desired state of a job that reached a limit. The API stores requests of users; limits are found here
 * first.
 */
async function keepLimit({ deps, log }: AttemptContext, job: Job): Promise<void> {
  if (job.reason !== 'budget_reached' && job.reason !== 'preemption_limit') return;
  await retryTransient(() => keepDesired(deps, job), deps.timing.storage).catch((error: unknown) =>
    log.warn({ err: error }, 'desired state after a reached limit is stored in the job store only'),
  );
}

/** Fails the job. Its checkpoints stay. */
export async function fail(
  ctx: AttemptContext,
  error: AttemptError,
  latest: Job['latest_checkpoint'],
): Promise<void> {
  const { deps, lease, log, logs } = ctx;
  logs.message(`failed: ${error.code}: ${error.message}`);
  await flushReports(ctx);
  const { deterministic: _, worker_id: _worker, ...failure } = error;
  const result: ResultDocument = {
    ...(await resultBase(ctx)),
    state: 'failed',
    reason: failure.code,
    step: latest?.step ?? 0,
    state_digest: latest?.state_digest ?? null,
    checkpoint: latest?.id ?? null,
    export: null,
    failure,
  };
  // The object store may be the cause of the failure. The job's record holds the same facts.
  await putResult(deps.objects, result).catch((cause: unknown) =>
    log.warn({ err: cause }, 'result.json not written'),
  );
  await lease.call((id, execution) =>
    deps.store.finishJob(id, execution, 'failed', { reason: failure.code, failure }),
  );
}

/**
 * Confirms the lease first: the object store cannot refuse a result, and the last one written counts.
 * @throws ZerofleetError the reason for which the lease was lost
 */
async function resultBase({ deps, job, lease }: AttemptContext) {
  await lease.confirm();
  const now = await lease.call((id) => deps.store.getJob(id));
  return {
    job_id: job.id,
    epoch: epochOf(lease.execution),
    total_steps: now?.progress.total_steps ?? null,
    metrics: now?.progress ?? null,
    finished_at: new Date().toISOString(),
  };
}
