/** Sweeps for tests, with the servers that work on them. */
import type { Test } from 'tap';
import type { Job, Sweep } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { until } from '../../platform/testing/waiting.js';
import { runSweeps } from '../sweeps/runner.js';
import { smallSweep, startTestStack, type TestStack } from './stack.js';
import { checkpointOf, metricOf, progressOf } from './training.js';

export const HALVING_STEPS = 8;
const RATES = [0.004, 0.001, 0.003, 0.002];
const TEXT = 'to be or not to be, that is the question. '.repeat(400);

/** A stack with several servers that work on sweeps, as fast as they can. */
export async function startWithSweeps(t: Test, servers = 3) {
  const stack = await startTestStack();
  const log = createLogger({ level: process.env.ZF_TEST_LOG ? 'info' : 'silent', name: 'sweeps' });
  const runners = Array.from({ length: servers }, () => runSweeps({ ...stack, log }, 5));
  t.teardown(async () => {
    await Promise.all(runners.map((runner) => runner.close()));
    await stack.close();
  });
  const { id: dataset } = await stack.upload(TEXT);
  return { stack, dataset };
}

export const postSweep = (stack: TestStack, path: string, payload?: object) =>
  stack.request({ method: 'POST', url: `/v1/sweeps${path}`, ...(payload && { payload }) });
export const getSweep = async (stack: TestStack, id: string) =>
  (await stack.request({ url: `/v1/sweeps/${id}` })).json<Sweep>();
/** Waits for a state of a sweep. */
export const settled = (stack: TestStack, id: string, is: (sweep: Sweep) => boolean): Promise<Sweep> =>
  found(async () => {
    const sweep = await getSweep(stack, id);
    return is(sweep) ? sweep : null;
  });
export const jobOf = async (stack: TestStack, id: string) => (await stack.store.getJob(id)) as Job;
export const jobsOf = (stack: TestStack, sweep: Sweep) =>
  Promise.all(sweep.runs.map(({ job_id }) => stack.store.getJob(job_id)));

/** Waits for a value. */
export async function found<T>(look: () => Promise<T | null>): Promise<T> {
  let value: T | null = null;
  await until(async () => {
    value = await look();
    return value !== null;
  });
  return value as T;
}

/** Successive halving of four rates, of which the second is the best. */
export function halvingSweep(dataset: string) {
  const { spec } = smallSweep(dataset);
  return {
    name: 'halving',
    spec: { ...spec, train: { steps: HALVING_STEPS, evaluation: { every_steps: 2 } } },
    space: { 'train.optimizer.lr': { values: RATES } },
    method: 'successive_halving',
    min_steps: 2,
    factor: 2,
    max_concurrent: 2,
  };
}

/** Trains a job as a worker does: to its end, or until it shall pause. Its loss depends on the learning rate. */
export async function trainForSweep({ store }: TestStack, id: string): Promise<void> {
  const job = (await store.getJob(id)) as Job;
  const claim = await store.claimAttempt(id, job.attempt, 'worker', 600_000);
  if (!claim.granted) return;
  const { execution } = claim;
  await store.transition(id, execution, 'starting');
  await store.transition(id, execution, 'running', { patch: { world_size: 1 } });
  const { lr } = job.spec.train.optimizer as { lr: number };
  for (let step = job.progress.step + 1; step <= HALVING_STEPS; step += 1) {
    const metric = {
      ...metricOf(step),
      ...(step % 2 === 0 && { eval_losses: { validation: lr + 1 / step } }),
    };
    await store.report(id, execution, [metric], progressOf(step, HALVING_STEPS), { batch: step });
    if (step % 2 === 1) continue;
    const isAsked = async () => (await store.getJob(id))?.state !== 'running';
    const isLast = step === HALVING_STEPS;
    if (!isLast && !(await asked(isAsked))) continue;
    await store.commitCheckpoint(id, execution, checkpointOf(id, step));
    if (isLast) await store.finishJob(id, execution, 'succeeded', { reason: 'completed' });
    else await store.releaseAttempt(id, execution, { to: 'paused' });
    return;
  }
}

/** True if a request comes soon; without one the job trains on, past the rung. */
async function asked(isAsked: () => Promise<boolean>): Promise<boolean> {
  for (let looks = 0; looks < 10; looks += 1) if (await isAsked()) return true;
  return false;
}
