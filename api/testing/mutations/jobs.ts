/** Mutating requests for jobs and checkpoints. */
import type { InjectOptions } from 'fastify';
import type { Job } from '../../../contracts/index.js';
import { putTestCheckpoint } from '../../../formats/testing/checkpoints.js';
import { smallSpec, type TestStack } from '../stack.js';
import { checkpointOf, claimAndTrain } from '../training.js';
import { type Mutation, numOf, TEXT } from './mutation.js';

const onJob = (job: { id: string }, action: string, payload?: object): InjectOptions => ({
  method: 'POST',
  url: `/v1/jobs/${job.id}/${action}`,
  ...(payload && { payload }),
});
const attemptOf =
  ({ store }: TestStack, { id }: Job) =>
  async () =>
    (await store.getJob(id))?.attempt ?? 0;
const eventsOf =
  ({ store }: TestStack, { id }: Job, type: string) =>
  async () =>
    (await store.readStream(id, null, 100, ['event'])).filter(
      (event) => 'type' in event && event.type === type,
    ).length;

/** A running job with a checkpoint. */
async function trained(stack: TestStack) {
  const job = await stack.createJob();
  const execution = await claimAndTrain(stack.store, job.id, { steps: 1 });
  const checkpoint = checkpointOf(job.id, 2);
  await putTestCheckpoint(stack.objects, checkpoint.prefix, { numels: [10], ranks: 2 }, checkpoint.id);
  await stack.store.commitCheckpoint(job.id, execution, checkpoint);
  return { job, execution, checkpoint };
}

export const JOB_MUTATIONS = {
  createJob: {
    status: 201,
    isAtomic: true,
    prepare: async (stack) => ({
      request: { method: 'POST', url: '/v1/jobs', payload: smallSpec((await stack.upload(TEXT)).id) },
      effects: numOf(stack, '/v1/jobs'),
    }),
  },
  forkJob: {
    status: 201,
    isAtomic: true,
    prepare: async (stack) => {
      const { job } = await trained(stack);
      return { request: onJob(job, 'fork', {}), effects: numOf(stack, '/v1/jobs') };
    },
  },
  updateJob: {
    status: 200,
    prepare: async (stack) => {
      const job = await stack.createJob();
      const request = { method: 'PATCH', url: `/v1/jobs/${job.id}`, payload: { priority: 5 } } as const;
      return { request, effects: eventsOf(stack, job, 'job.updated') };
    },
  },
  pauseJob: {
    status: 202,
    prepare: async (stack) => {
      const job = await stack.createJob();
      return { request: onJob(job, 'pause'), effects: eventsOf(stack, job, 'job.state') };
    },
  },
  cancelJob: {
    status: 202,
    prepare: async (stack) => {
      const job = await stack.createJob();
      return { request: onJob(job, 'cancel'), effects: eventsOf(stack, job, 'job.state') };
    },
  },
  resumeJob: {
    status: 202,
    prepare: async (stack) => {
      const job = await stack.createJob();
      await stack.store.requestPause(job.id);
      return { request: onJob(job, 'resume', {}), effects: attemptOf(stack, job) };
    },
  },
  retryJob: {
    status: 202,
    prepare: async (stack) => {
      const { job, execution } = await trained(stack);
      await stack.store.finishJob(job.id, execution, 'failed');
      return { request: onJob(job, 'retry'), effects: attemptOf(stack, job) };
    },
  },
  resizeJob: {
    status: 202,
    prepare: async (stack) => {
      const job = await stack.createJob();
      return {
        request: onJob(job, 'resize', { ranks: 3 }),
        effects: eventsOf(stack, job, 'resize.requested'),
      };
    },
  },
  checkpointJob: {
    status: 202,
    prepare: async (stack) => {
      const { job } = await trained(stack);
      return { request: onJob(job, 'checkpoint'), effects: eventsOf(stack, job, 'checkpoint.requested') };
    },
  },
  deleteJob: {
    status: 204,
    prepare: async (stack) => {
      const job = await stack.createJob();
      await stack.store.requestCancel(job.id);
      return {
        request: { method: 'DELETE', url: `/v1/jobs/${job.id}?artifacts=true` },
        effects: numOf(stack, '/v1/jobs'),
      };
    },
  },
  updateCheckpoint: {
    status: 200,
    prepare: async (stack) => {
      const { checkpoint } = await trained(stack);
      const url = `/v1/checkpoints/${checkpoint.id}`;
      return {
        request: { method: 'PATCH', url, payload: { pinned: true } },
        effects: async () => Number((await stack.request({ url })).json<{ pinned: boolean }>().pinned),
      };
    },
  },
  deleteCheckpoint: {
    status: 204,
    prepare: async (stack) => {
      const { job, execution, checkpoint } = await trained(stack);
      await stack.store.finishJob(job.id, execution, 'succeeded');
      return {
        request: { method: 'DELETE', url: `/v1/checkpoints/${checkpoint.id}` },
        effects: numOf(stack, `/v1/jobs/${job.id}/checkpoints`),
      };
    },
  },
  exportCheckpoint: {
    status: 202,
    prepare: async (stack) => {
      const { checkpoint } = await trained(stack);
      const url = `/v1/checkpoints/${checkpoint.id}/export`;
      return {
        request: { method: 'POST', url, payload: {} },
        effects: async () =>
          (await stack.request({ url: `${url}s` })).json<{ data: unknown[] }>().data.length,
      };
    },
  },
} satisfies Record<string, Mutation>;
