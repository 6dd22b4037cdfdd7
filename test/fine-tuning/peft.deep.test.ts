/**
 * Adapters that peft wrote, over a model of transformers: they are uploaded, compute what they did there, and are
 * trained on.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { ExportRequest, Job, JobSpec, Model } from '../../contracts/index.js';
import { tarOf } from '../../formats/testing/models.js';
import { projectRoot } from '../../platform/process/root.js';
import { tensorsOf } from '../support/adapted.js';
import { startStack } from '../support/stack.js';
import { StoredState } from '../support/stored-state.js';

const HERE = join(projectRoot(), 'test', 'fine-tuning', 'peft');
const BASE = join(projectRoot(), 'test', 'e2e', 'hf-llama', 'model');
const GOLDEN = JSON.parse(readFileSync(join(HERE, 'losses.json'), 'utf8')) as {
  text: string;
  length: number;
  losses: Record<string, number>;
};
const ADAPTERS = Object.keys(GOLDEN.losses).filter((name) => name !== 'base');
const SEQUENCES = Math.floor((GOLDEN.text.length - 1) / GOLDEN.length);
const TOLERANCE = 1e-5;
/** Leaves the weights as they are. */
const NO_RATE = 1e-30;

const archiveOf = (folder: string) =>
  tarOf(new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))] as const)));

t.test('adapters of peft', async (t) => {
  const stack = await startStack(t);
  const { client } = stack;
  const dataset = (await client.datasets.create('text', GOLDEN.text)).id;
  const base = (await client.models.create('base', await archiveOf(BASE))).id;
  const models = new Map<string, Model>();
  for (const name of ADAPTERS)
    models.set(name, await client.models.create(name, await archiveOf(join(HERE, name)), { base }));
  const modelOf = (name: string) => models.get(name) as Model;

  const specOf = (model: string, ranks = 1, train: JobSpec['train'] = {}): JobSpec => ({
    name: 'adapted',
    model: { init_from: { model } },
    data: { dataset, tokenizer: 'bytes' },
    train: {
      steps: 1,
      sequence_length: GOLDEN.length,
      global_batch_size: SEQUENCES,
      micro_batch_size: 1,
      precision: 'fp32',
      optimizer: { lr: NO_RATE, weight_decay: 0 },
      ...train,
    },
    zero: { bucket_bytes: 16384 * 4 },
    resources: { ranks: { min: 1, max: 4, preferred: ranks } },
  });
  const run = async (spec: JobSpec): Promise<Job> => {
    const { id } = await client.jobs.create(spec);
    const job = await client.jobs.until(id, () => false, { interval_ms: 50 });
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    return job;
  };
  const lastOf = async ({ id }: Job) => {
    const [last] = await collect(client.jobs.checkpoints(id));
    if (!last) throw new Error(`job ${id} has no checkpoint`);
    return last;
  };
  const exportOf = async (checkpoint: string, request: ExportRequest) => {
    for (;;) {
      const { state, prefix, error } = await client.checkpoints.export(checkpoint, request);
      if (state === 'succeeded') return join(stack.data_dir, 'objects', prefix);
      if (state === 'failed') throw new Error(JSON.stringify(error));
      await delay(100);
    }
  };

  for (const name of ADAPTERS) {
    await t.test(`${name}: the first loss is that of peft, and the file comes back as it was`, async (t) => {
      const { id, adapter } = modelOf(name);
      const job = await run(specOf(id, 1, { adapter: { ...adapter, dropout: 0 } }));
      const [first] = await collect(client.jobs.metrics(job.id));
      const { [name]: expected = 0, base: without = 0 } = GOLDEN.losses;
      t.ok(Math.abs((first?.loss ?? 0) / expected - 1) < TOLERANCE, `${first?.loss}, in peft ${expected}`);
      t.ok(Math.abs(without / expected - 1) > 5 * TOLERANCE, 'the adapter counts');
      const folder = await exportOf((await lastOf(job)).id, { format: 'peft', dtype: 'fp32' });
      const [ours, theirs] = [folder, join(HERE, name)].map((at) =>
        tensorsOf(join(at, 'adapter_model.safetensors')),
      );
      t.same(new Map([...(ours ?? [])].sort()), new Map([...(theirs ?? [])].sort()));
      const [state, source] = [new StoredState(stack.data_dir, await lastOf(job)), { model: base }];
      t.match(state.manifest.base, { source }, 'the base is that of the adapter');
    });
  }

  await t.test('the adapter is trained on without naming it, to the same bits on other ranks', async (t) => {
    const train = { steps: 6, optimizer: { lr: 1e-2 } };
    const one = await run(specOf(modelOf('dora').id, 1, train));
    const three = await run(specOf(modelOf('dora').id, 3, train));
    t.equal(three.export?.state_digest, one.export?.state_digest);
    t.same(one.spec.train.adapter, modelOf('dora').adapter);
    const metrics = await collect(client.jobs.metrics(one.id));
    t.ok((metrics.at(-1)?.loss ?? 9) < (metrics[0]?.loss ?? 0), 'it learns');
  });

  await t.test('our own folder is an adapter too; a base is kept while adapters need it', async (t) => {
    const job = await run(specOf(modelOf('lora').id, 2, { steps: 3, optimizer: { lr: 1e-2 } }));
    const last = await lastOf(job);
    const folder = await exportOf(last.id, { format: 'peft', dtype: 'fp32' });
    const again = await client.models.create('again', await archiveOf(folder), { base });
    t.same(again.adapter, modelOf('lora').adapter);
    const next = await lastOf(await run(specOf(again.id)));
    const [before, after] = [last, next].map((checkpoint) => new StoredState(stack.data_dir, checkpoint));
    for (const { name, base } of before?.manifest.params ?? [])
      if (!base) t.same(after?.read('master', name), before?.read('master', name), name);
    await t.rejects(client.models.delete(base), /409 .*model_in_use/);
    for await (const { id } of client.jobs.list()) await client.jobs.delete(id);
    await t.rejects(client.models.delete(base), /409 .*model_in_use.*/);
    for (const { id } of [again, ...models.values()]) await client.models.delete(id);
    await client.models.delete(base);
  });
});
