import { ulid } from 'ulid';
import type { Execution } from '../../contracts/execution.js';
import type { Checkpoint, Job, ReportedProgress } from '../../contracts/index.js';
import type { JobStore, MetricInput } from '../../state/index.js';
import { CHATS, type TestStack } from './stack.js';

interface TrainedSteps {
  /** Steps to report; the last one is followed by a checkpoint. */
  steps: number;
  /** Finish the job afterwards. */
  finish?: boolean;
  /** Metrics of samples, the same of each step. */
  reinforcement?: NonNullable<MetricInput['reinforcement']>;
}

/** Writes the reports of a worker about a job, without a worker. @returns the execution that holds the job */
export async function claimAndTrain(
  store: JobStore,
  jobId: string,
  { steps, finish, reinforcement }: TrainedSteps,
): Promise<Execution> {
  const claim = await store.claimAttempt(jobId, 1, 'test-worker', 600_000);
  if (!claim.granted) throw new Error(claim.code);
  const { execution } = claim;
  await store.transition(jobId, execution, 'starting');
  await store.transition(jobId, execution, 'running', { patch: { world_size: 2 } });
  for (let step = 1; step <= steps; step += 1) {
    await store.report(
      jobId,
      execution,
      [{ ...metricOf(step), ...(reinforcement && { reinforcement }) }],
      progressOf(step, claim.job.spec.train.steps ?? step),
      {
        batch: step,
      },
    );
  }
  await store.commitCheckpoint(jobId, execution, checkpointOf(jobId, steps));
  if (finish) await store.finishJob(jobId, execution, 'succeeded', { reason: 'completed' });
  return execution;
}

/** A running job of chats, with a checkpoint that a worker can answer from. */
export async function servedCheckpoint(stack: TestStack): Promise<{ job: Job; checkpoint: Checkpoint }> {
  const { id: dataset } = await stack.upload(CHATS, 'jsonl');
  const job = await stack.createJob({ data: { dataset, chat_template: '{{ messages }}' } });
  await claimAndTrain(stack.store, job.id, { steps: 1 });
  const [checkpoint] = (await stack.store.listCheckpoints(job.id)).data as [Checkpoint];
  await stack.objects.put(`${checkpoint.prefix}/MANIFEST.json`, Buffer.from('{}'));
  return { job, checkpoint };
}

/** Answers of two checkpoints to two prompts, as the forwarder writes them; the second one failed. */
export async function answered({ store }: Pick<TestStack, 'store'>, jobId: string): Promise<void> {
  const claims = await store.claimForwards({ limit: 10, lease_ms: 60_000, idle_ms: 60_000 });
  const claim = claims.find(({ job_id }) => job_id === jobId);
  if (claim === undefined) throw new Error('the job has no prompts');
  const events = [
    { type: 'samples.answered', data: { step: 5, checkpoint_id: 'ckpt_1', answers: ['one\nline', 'two'] } },
    {
      type: 'samples.failed',
      data: { step: 10, checkpoint_id: 'ckpt_2', error: 'prompt_too_long', message: 'too long' },
    },
  ];
  for (const event of events)
    await store.saveForward(claim, { state: {}, next: { lease_ms: 60_000 }, event });
}

/** Metrics of one step of two ranks, with a falling loss. */
export function metricOf(step: number): MetricInput {
  return {
    step,
    loss: 5.5 / Math.sqrt(step),
    grad_norm: 1.25,
    lr: 1e-3,
    seconds: {
      total: 0.2,
      data: 0,
      forward: 0.06,
      backward: 0.12,
      exchange: 0.01,
      optimizer: 0.01,
      gather: 0,
    },
    tokens: step * 2048,
    tokens_per_second: 10_000,
    world_size: 2,
    memory_bytes: 400_000_000,
  };
}

export function progressOf(step: number, totalSteps: number): ReportedProgress {
  return {
    step,
    tokens: step * 2048,
    loss: 5.5 / Math.sqrt(step),
    tokens_per_second: 10_000,
    eta_seconds: 0.2 * (totalSteps - step),
  };
}

export function checkpointOf(jobId: string, step: number): Checkpoint {
  return {
    id: `ckpt_${ulid()}`,
    job_id: jobId,
    step,
    world_size: 2,
    state_digest: step.toString(16).padStart(32, '0'),
    bytes: 39_000_000,
    committed_at: new Date().toISOString(),
    pinned: false,
    damaged: false,
    prefix: `jobs/${jobId}/checkpoints/${String(step).padStart(9, '0')}-1-0`,
  };
}
