/**
 * A checkpoint leaves in DeepSpeed's universal layout, comes back as an upload, and a job goes on from it exactly as another one does
 * from the checkpoint itself: weights, moments and count of steps are all there, on another number of ranks.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { tarOf } from '../../platform/testing/models.js';
import { smallJob } from './specs.js';
import { sampleText, startStack } from './stack.js';

const STEPS = 12;

t.test('there and back in the universal layout', async (t) => {
  const { client, data_dir } = await startStack(t);
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  const run = async (spec: JobSpec) => {
    const { id } = await client.jobs.create(spec);
    const job = await client.jobs.until(id, () => false);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    return job;
  };
  const job = await run(smallJob({ name: 'first', dataset, steps: STEPS, ranks: 3 }));
  const checkpoint = job.latest_checkpoint?.id ?? '';

  let exported = await client.checkpoints.export(checkpoint, { format: 'deepspeed_universal' });
  while (exported.state === 'queued' || exported.state === 'running') {
    await delay(100);
    exported = (await client.checkpoints.exports(checkpoint))[0] ?? exported;
  }
  t.equal(exported.state, 'succeeded', JSON.stringify(exported.error));
  const { prefix } = exported;
  const folder = join(data_dir, 'objects', prefix);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const archive = await tarOf(files.map((file) => [relative(folder, file), readFileSync(file)] as const));
  const model = await client.models.create('back', archive);
  t.equal(model.optimizer_steps, STEPS);
  t.same(model.dtypes, ['fp32']);

  const goOn = (init_from: JobSpec['model']['init_from'], ranks: number): JobSpec => {
    const spec = smallJob({ name: 'on', dataset, steps: 5, ranks });
    return { ...spec, model: { ...spec.model, ...(init_from && { init_from }) } };
  };
  const digestOf = async (init_from: JobSpec['model']['init_from'], ranks: number) =>
    (await run(goOn(init_from, ranks))).export?.state_digest;
  const expected = await digestOf({ checkpoint, restore: 'full' }, 1);
  t.match(expected, /^[0-9a-f]{32}$/);
  t.equal(await digestOf({ model: model.id, restore: 'full' }, 2), expected);
  const weights = await digestOf({ model: model.id }, 1);
  t.not(weights, expected, 'without the state of the optimizer it goes another way');
  t.equal(await digestOf({ checkpoint, restore: 'weights' }, 2), weights);
});
