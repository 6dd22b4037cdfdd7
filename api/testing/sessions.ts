import { setTimeout } from 'node:timers/promises';
import type { CallResult, Job, StoredCall } from '../../contracts/index.js';
import { putCallResult, readCall } from '../../formats/calls/call-log.js';
import type { TestStack } from './stack.js';

/** Pause between two looks for calls. */
const POLL_MS = 50;

/** The document of the smallest session. */
export const smallSession = {
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

/** Answers every call of every session as soon as it is stored, until the signal is aborted. */
export async function answerSessions(
  stack: Pick<TestStack, 'store' | 'objects'>,
  resultOf: (call: StoredCall, number: number, jobId: string) => CallResult,
  signal: AbortSignal,
): Promise<void> {
  const { store, objects } = stack;
  const answerAll = async (id: string) => {
    const { appended = 0, answered = 0 } = (await store.getCalls(id)) ?? {};
    for (let number = answered + 1; number <= appended; number += 1)
      await answerCall(stack, id, number, resultOf(await readCall(objects, id, number), number, id));
  };
  while (!signal.aborted) {
    for (const { id } of (await store.listJobs({ project: 'default' })).data) {
      try {
        await answerAll(id);
      } catch (error) {
        // The test may have deleted the session meanwhile.
        if ((await store.getJob(id)) !== null) throw error;
      }
    }
    await setTimeout(POLL_MS);
  }
}
