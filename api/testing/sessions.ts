import type { CallResult, Job } from '../../contracts/index.js';
import { putCallResult } from '../../formats/calls/call-log.js';
import type { TestStack } from './stack.js';

/** The document of the smallest session. */
const smallSession = {
  model: { preset: 'llama-tiny' },
  data: {},
  train: { session: {}, sequence_length: 16, global_batch_size: 4, micro_batch_size: 2 },
  resources: { ranks: { min: 1, max: 2, preferred: 1 } },
};

export async function createSession(stack: TestStack, changes: object = {}): Promise<Job> {
  const payload = { ...smallSession, ...changes };
  return (await stack.request({ method: 'POST', url: '/v1/jobs', payload })).json<Job>();
}

/** Answers a call as the worker of the session does. */
export async function answerCall(
  { store, objects }: Pick<TestStack, 'store' | 'objects'>,
  jobId: string,
  number: number,
  result: CallResult,
): Promise<void> {
  const { bytes } = await putCallResult(objects, { job_id: jobId, number }, result);
  await store.countCalls(jobId, { answered: number, bytes });
}
