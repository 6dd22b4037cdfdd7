import type { Job } from '../../contracts/index.js';
import { resultKey } from '../../platform/checkpoint/layout.js';
import type { ResumePoint } from '../checkpoint/job-checkpoints.js';
import { isRetryable } from '../errors.js';
import { retry } from '../retry.js';
import { runTask } from '../tasks/task-runner.js';
import type { AttemptContext } from './context.js';
import type { AttemptError } from './failure.js';

/** The document that a finished job leaves beside its checkpoints. */
interface JobResult {
  job_id: string;
  state: 'succeeded' | 'failed';
  step: number;
  total_steps: number;
  state_digest: string | null;
  checkpoint: string | null;
  metrics: Job['progress'] | null;
  export: Job['export'];
  failure: Job['failure'];
  finished_at: string;
}

/** Exports the weights of the last checkpoint, writes the result and finishes the job. Safe to repeat. */
export async function succeed(ctx: AttemptContext, last: ResumePoint, signal: AbortSignal): Promise<void> {
  const { deps, job, lease, log, reporter } = ctx;
  await reporter.flush();
  const exported = await runTask(
    deps.programs.task,
    {
      kind: 'export_model',
      object_store: deps.object_store,
      job_id: job.id,
      spec: job.spec,
      checkpoint: last.prefix,
      retry: deps.timing.storage,
    },
    { signal, log },
  );
  await putResult(ctx, {
    ...(await resultBase(ctx)),
    state: 'succeeded',
    step: last.checkpoint.step,
    state_digest: last.checkpoint.state_digest,
    checkpoint: last.checkpoint.id,
    export: exported,
    failure: null,
  });
  await lease.call((id, epoch) =>
    deps.store.finishJob(id, epoch, 'succeeded', { reason: 'completed', export: exported }),
  );
}

/** Fails the job. Its checkpoints stay. */
export async function fail(
  ctx: AttemptContext,
  error: AttemptError,
  latest: ResumePoint['checkpoint'] | null,
): Promise<void> {
  const { deps, lease, log, reporter } = ctx;
  await reporter.flush();
  const { deterministic: _, ...failure } = error;
  const result: JobResult = {
    ...(await resultBase(ctx)),
    state: 'failed',
    step: latest?.step ?? 0,
    state_digest: latest?.state_digest ?? null,
    checkpoint: latest?.id ?? null,
    export: null,
    failure,
  };
  // The store that can't be written may be the very reason of the failure; the job's record says the same.
  await deps.objects
    .put(resultKey(ctx.job.id), resultBytes(result))
    .catch((cause: unknown) => log.warn({ err: cause }, 'result.json not written'));
  await lease.call((id, epoch) =>
    deps.store.finishJob(id, epoch, 'failed', { reason: failure.code, failure }),
  );
}

async function resultBase({ deps, job, lease }: AttemptContext) {
  const now = await lease.call((id) => deps.store.getJob(id));
  return {
    job_id: job.id,
    total_steps: job.spec.train.steps,
    metrics: now?.progress ?? null,
    finished_at: new Date().toISOString(),
  };
}

async function putResult({ deps, job, lease }: AttemptContext, result: JobResult): Promise<void> {
  await retry(() => deps.objects.put(resultKey(job.id), resultBytes(result)), deps.timing.storage, {
    retryable: isRetryable,
    signal: lease.lost,
  });
}

function resultBytes(result: JobResult): Uint8Array {
  return Buffer.from(`${JSON.stringify(result, null, 2)}\n`);
}
