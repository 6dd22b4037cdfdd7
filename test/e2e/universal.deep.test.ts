/**
 * A checkpoint is exported in DeepSpeed's universal layout and uploaded again. A job continues from it exactly as from
 * the original checkpoint, on another number of ranks: weights, moments and step count are complete.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { TINY_MIXTRAL, tarOf } from '../../formats/testing/models.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack } from '../support/stack.js';
import { StoredState } from '../support/stored-state.js';

const STEPS = 4;

type Optimizer = NonNullable<NonNullable<JobSpec['train']>['optimizer']>;
const OPTIMIZERS: Optimizer[] = [
  { type: 'adamw' },
  { type: 'adam' },
  { type: 'lamb' },
  { type: 'lion', lr: 1e-4 },
  { type: 'adagrad' },
  { type: 'sgd' },
  { type: 'sgd', momentum: 0 },
  { type: 'adamw', param_groups: [{ match: 'model.embed_tokens.*', frozen: true }] },
  { type: 'sgd', momentum: 0, param_groups: [{ match: '*norm*', frozen: true }] },
];

t.test('there and back in the universal layout', async (t) => {
  const { client, data_dir } = await startStack(t);
  const dataset = (await client.datasets.create('openapi', sampleText())).id;
  const run = async (spec: JobSpec, optimizer: Optimizer) => {
    const { id } = await client.jobs.create({ ...spec, train: { ...spec.train, optimizer } } as JobSpec);
    const job = await client.jobs.until(id, () => false);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    return job;
  };
  const exportOf = async (checkpoint: string) => {
    let exported = await client.checkpoints.export(checkpoint, { format: 'deepspeed_universal' });
    while (exported.state === 'queued' || exported.state === 'running') {
      await delay(100);
      exported = (await client.checkpoints.exports(checkpoint))[0] ?? exported;
    }
    t.equal(exported.state, 'succeeded', JSON.stringify(exported.error));
    const folder = join(data_dir, 'objects', exported.prefix);
    const files = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    return tarOf(files.map((file) => [relative(folder, file), readFileSync(file)] as const));
  };
  for (const [index, optimizer] of OPTIMIZERS.entries()) {
    const { type = 'adamw', momentum, param_groups } = optimizer;
    const kind = [
      type,
      momentum === 0 ? 'without momentum' : '',
      param_groups ? 'with frozen parameters' : '',
    ];
    await t.test(kind.filter(Boolean).join(' '), async (t) => {
      const first = smallJob({ name: `first-${index}`, dataset, steps: STEPS, ranks: 3 });
      const checkpoint = (await run(first, optimizer)).latest_checkpoint?.id ?? '';
      const model = await client.models.create(`back-${index}`, await exportOf(checkpoint));
      t.equal(model.optimizer_steps, STEPS);
      t.same(model.dtypes, ['fp32']);
      t.equal((model.frozen_parameters ?? []).length > 0, param_groups !== undefined);
      const digestOf = async (initFrom: JobSpec['model']['init_from'], ranks: number) => {
        const spec = smallJob({ name: `on-${index}`, dataset, steps: 3, ranks });
        const goOn = { ...spec, model: { ...spec.model, ...(initFrom && { init_from: initFrom }) } };
        return (await run(goOn, optimizer)).export?.state_digest;
      };
      const all = { restore: 'full' } as const;
      const [expected, back] = await Promise.all([
        digestOf({ checkpoint, ...all }, 1),
        digestOf({ model: model.id, ...all }, 2),
      ]);
      t.match(expected, /^[0-9a-f]{32}$/);
      t.equal(back, expected);
      // SGD without momentum has no state whose absence could change the result.
      if (momentum === 0 || param_groups) return;
      const weights = await digestOf({ model: model.id }, 1);
      t.not(weights, expected, 'without the optimizer state the result differs');
      if (index === 0) t.equal(await digestOf({ checkpoint, restore: 'weights' }, 2), weights);
    });
  }

  await t.test('stacked experts and a dynamic loss scale', async (t) => {
    const begin = async (
      name: string,
      steps: number,
      ranks: number,
      initFrom?: JobSpec['model']['init_from'],
    ) => {
      const spec = smallJob({ name, dataset, steps, ranks });
      const train = { ...spec.train, precision: 'fp16', loss_scale: { initial_scale: 256, window: 2 } };
      const job = await run(
        {
          ...spec,
          model: { config: TINY_MIXTRAL, ...(initFrom && { init_from: initFrom }) },
          train,
        } as JobSpec,
        {},
      );
      const id = job.latest_checkpoint?.id ?? '';
      const { manifest } = new StoredState(data_dir, await client.checkpoints.get(id));
      return { id, digest: job.export?.state_digest, scaler: manifest.loss_scaler };
    };
    const first = await begin('experts', STEPS, 3);
    t.not(first.scaler.scale, 256, 'the scale has changed');
    const model = await client.models.create('experts', await exportOf(first.id));
    t.ok(model.files.some(({ name }) => name.endsWith('mlp.experts.gate_up_proj/fp32.pt')));
    const [expected, back] = await Promise.all([
      begin('from-checkpoint', 3, 1, { checkpoint: first.id, restore: 'full' }),
      begin('from-model', 3, 2, { model: model.id, restore: 'full' }),
    ]);
    t.match(expected.digest, /^[0-9a-f]{32}$/);
    t.equal(back.digest, expected.digest);
    t.strictSame(back.scaler, expected.scaler);
    t.equal(back.scaler.iteration, first.scaler.iteration + 3);
  });

  await t.test('an average begins with the uploaded weights, and is not exported', async (t) => {
    const first = smallJob({ name: 'averaged', dataset, steps: STEPS, ranks: 2 });
    first.train = { ...first.train, ema: { decay: 0.5 } } as JobSpec['train'];
    const checkpoint = (await run(first, {})).latest_checkpoint?.id ?? '';
    const model = await client.models.create('averaged', await exportOf(checkpoint));
    t.same(model.optimizer_states, ['exp_avg', 'exp_avg_sq']);
    const [one, three] = await Promise.all(
      [1, 3].map((ranks) => {
        const spec = smallJob({ name: `averaged-${ranks}`, dataset, steps: 1, ranks });
        const train = { ...spec.train, ema: { decay: 0.75 }, lr_schedule: { type: 'constant' } };
        const initFrom = { model: model.id, restore: 'full' };
        return run({ ...spec, train, model: { ...spec.model, init_from: initFrom } } as JobSpec, {
          lr: 1e-2,
        });
      }),
    );
    t.equal(one?.export?.state_digest, three?.export?.state_digest);
    const ids = [checkpoint, one?.latest_checkpoint?.id ?? ''];
    const [before, after] = await Promise.all(
      ids.map(async (id) => new StoredState(data_dir, await client.checkpoints.get(id))),
    );
    for (const { name } of after?.manifest.params ?? []) {
      const [start, master, ema] = [
        before?.read('master', name),
        after?.read('master', name),
        after?.read('ema', name),
      ];
      const expected = start?.map(
        (value, i) => value + Math.fround(Math.fround((master?.[i] ?? 0) - value) / 4),
      );
      t.ok(
        master?.some((value, i) => value !== start?.[i]),
        `${name} moved`,
      );
      t.ok(expected && ema?.every((value, i) => value === expected[i]), name);
    }
  });
});
