/** A job for fault injection, and its reference. */
import { smallJob } from './specs.js';
import { sampleText, type TestStack } from './stack.js';

const STEPS = 60;

/** Trains the reference of a stack's small job and returns its dataset and digest. */
export async function reference(stack: TestStack): Promise<{ dataset: string; digest: string }> {
  const dataset = (await stack.client.datasets.create('openapi', sampleText())).id;
  const spec = smallJob({ name: 'reference', dataset, steps: STEPS, ranks: 1 });
  const job = await stack.client.jobs.until((await stack.client.jobs.create(spec)).id, () => false);
  return { dataset, digest: job.export?.state_digest ?? 'none' };
}

/** A job on two ranks that has completed at least `step` of its steps. */
export async function runningJob(stack: TestStack, dataset: string, step: number): Promise<string> {
  const spec = smallJob({ name: 'disturbed', dataset, steps: STEPS, ranks: 2, every_steps: 10 });
  const { id } = await stack.client.jobs.create(spec);
  await stack.client.jobs.until(id, (job) => job.progress.step >= step, { interval_ms: 5 });
  return id;
}
