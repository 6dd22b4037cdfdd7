/** Sweeps for tests, with the servers that work on them. */
import type { Test } from 'tap';
import type { Job, Sweep } from '../../contracts/index.js';
import { createLogger } from '../../platform/logging/logging.js';
import { until } from '../../platform/testing/waiting.js';
import { runSweeps } from '../sweeps/runner.js';
import { startTestStack, type TestStack } from './stack.js';

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
