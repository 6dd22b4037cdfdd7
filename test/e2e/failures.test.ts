/** Redis or the agent killed in the middle of a job: nothing is lost. */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { ApiError } from '../../clients/typescript/index.js';
import type { Job } from '../../contracts/index.js';
import { reference, runningJob } from '../support/disturbed-job.js';
import { agentProcess, descendants, isAlive, rankProcesses } from '../support/processes.js';
import { startStack, type TestStack } from '../support/stack.js';

const never = () => false;

/** Polls during the outage of Redis. */
async function waitThroughOutage(stack: TestStack, id: string): Promise<Job> {
  for (;;) {
    try {
      return await stack.client.jobs.until(id, never);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 503)) throw error;
      await sleep(100);
    }
  }
}

let stack: TestStack;
let dataset: string;
/** Digest of the uninterrupted job. */
let digest: string;

t.before(async () => {
  stack = await startStack(t);
  ({ dataset, digest } = await reference(stack));
});

t.test('Redis is killed in the middle of a job', async (t) => {
  const id = await runningJob(stack, dataset, 15);
  const redis = descendants(stack.pid).find(({ command }) => command.startsWith('redis-server'));
  process.kill(redis?.pid as number, 'SIGKILL');
  const job = await waitThroughOutage(stack, id);
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  t.equal(job.export?.state_digest, digest);
});

t.test('the worker agent is killed in the middle of a job', async (t) => {
  const id = await runningJob(stack, dataset, 25);
  const agent = agentProcess(stack.pid);
  const orphans = rankProcesses(stack.pid);
  process.kill(agent?.pid as number, 'SIGKILL');
  const job = await stack.client.jobs.until(id, never);
  t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
  t.equal(job.export?.state_digest, digest);
  const alive = orphans.filter(({ pid }) => isAlive(pid));
  t.same(alive, [], 'ranks end with their agent');
});
