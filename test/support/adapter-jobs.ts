import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Test } from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { CheckpointExport, ExportRequest, Job, JobSpec } from '../../contracts/index.js';
import { sampleText, startStack } from './stack.js';
import { STEPS } from './zero-specs.js';

export async function adapterJobs(t: Test) {
  const stack = await startStack(t);
  const { client } = stack;
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  const finished = async (t: Test, { id }: Pick<Job, 'id'>) => {
    const job = await client.jobs.until(id, () => false, { interval_ms: 50 });
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    return job;
  };
  const run = async (t: Test, spec: JobSpec) => finished(t, await client.jobs.create(spec));
  /**
   * Pauses a job in the middle, and continues it on three ranks. A busy machine may end it first; then another one is
   * tried.
   */
  const interrupted = async (t: Test, spec: JobSpec): Promise<Job> => {
    for (let attempt = 1; attempt <= 20; attempt++) {
      const { id } = await client.jobs.create(spec);
      await client.jobs.until(id, ({ progress }) => progress.step >= 3, { interval_ms: 5 });
      await client.jobs.pause(id).catch((error: unknown) => t.match(error, { status: 409 }));
      const paused = await client.jobs.until(id, ({ state }) => state === 'paused', { interval_ms: 10 });
      if (paused.progress.step >= STEPS) {
        await client.jobs.cancel(id);
        await client.jobs.until(id, () => false);
        // Its adapters would hold the base.
        await client.jobs.delete(id);
        continue;
      }
      await client.jobs.resume(id, { ranks: 3 });
      return finished(t, { id });
    }
    throw new Error('no job was paused before its end');
  };
  const checkpointOf = async ({ id }: Job) => {
    const [last] = await collect(client.jobs.checkpoints(id));
    if (!last) throw new Error(`job ${id} has no checkpoint`);
    return last;
  };
  const exportOf = async (checkpoint: string, request: ExportRequest): Promise<CheckpointExport> => {
    let exported = await client.checkpoints.export(checkpoint, request);
    while (exported.state === 'queued' || exported.state === 'running') {
      await delay(100);
      exported = await client.checkpoints.export(checkpoint, request);
    }
    if (exported.state !== 'succeeded') throw new Error(JSON.stringify(exported.error));
    return exported;
  };
  const folderOf = ({ prefix }: CheckpointExport) => join(stack.data_dir, 'objects', prefix);

  return { stack, client, dataset, run, interrupted, checkpointOf, exportOf, folderOf };
}
