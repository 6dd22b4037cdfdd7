/** Jobs over several datasets: the same bits on any number of ranks, interrupted or not, and a documented order. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { JobSpec } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { sampleText, startStack } from '../support/stack.js';

const STEPS = 24;
const FINISHED = () => false;

t.test('mixtures', async (t) => {
  const { client } = await startStack(t);
  const contract = readFileSync(join(projectRoot(), 'openapi.yaml'), 'utf8');
  const contents = [sampleText(), contract.slice(40_000, 43_000), contract.slice(50_000, 70_000)];
  const ids = await Promise.all(
    contents.map(async (text, i) => (await client.datasets.create(`part ${i}`, text)).id),
  );
  const [large, small, medium] = ids as [string, string, string];

  const resultOf = async (id: string) => {
    const job = await client.jobs.until(id, FINISHED, { interval_ms: 50 });
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    const metrics = await collect(client.jobs.metrics(id));
    const losses = metrics.flatMap(({ step, eval_losses }) => (eval_losses ? [[step, eval_losses]] : []));
    return { losses, digest: job.export?.state_digest };
  };
  const preparedOf = async (id: string) => {
    const events = await collect(client.jobs.events(id));
    return events.findLast(({ type }) => type === 'data.prepared')?.data;
  };
  const mixed = (name: string, ranks: number, mixture: NonNullable<JobSpec['data']['mixture']>): JobSpec => {
    const job = largerSteps(smallJob({ name, dataset: '', steps: STEPS, ranks }));
    return {
      ...job,
      data: { mixture, seed: 7, validation_fraction: 0.05 },
      train: { ...job.train, evaluation: { every_steps: 8 } },
    };
  };
  const run = async (spec: JobSpec) => resultOf((await client.jobs.create(spec)).id);
  const weighted = [
    { dataset: large, weight: 0.6 },
    { dataset: small, weight: 0.3 },
    { dataset: medium, weight: 0.1 },
  ];

  await t.test('with weights: the same bits on 1, 2 and 3 ranks, and over a pause', async (t) => {
    const first = await client.jobs.create(mixed('one rank', 1, weighted));
    await t.rejects(client.datasets.delete(small), { code: 'dataset_in_use' });
    const expected = await resultOf(first.id);
    t.same(
      expected.losses.map(([step]) => step),
      [8, 16, 24],
    );
    for (const ranks of [2, 3]) t.same(await run(mixed(`${ranks} ranks`, ranks, weighted)), expected);

    const { id } = await client.jobs.create(mixed('paused', 3, weighted));
    await client.jobs.until(id, ({ progress }) => progress.step >= 5, { interval_ms: 5 });
    await client.jobs.pause(id);
    const paused = await client.jobs.until(id, ({ state }) => state === 'paused', { interval_ms: 20 });
    t.ok(paused.progress.step >= 5 && paused.progress.step < STEPS, `paused at ${paused.progress.step}`);
    await client.jobs.resume(id, { ranks: 2 });
    t.same(await resultOf(id), expected);

    const others = [
      weighted.map(({ dataset }) => ({ dataset })),
      weighted.map(({ dataset }) => ({ dataset, weight: 1 })),
      [...weighted].reverse(),
      weighted.slice(0, 1),
    ];
    const digests = [expected.digest];
    for (const [i, mixture] of others.entries())
      digests.push((await run(mixed(`other ${i}`, 2, mixture))).digest);
    t.equal(new Set(digests).size, 5, 'datasets, weights and their order decide the bits');

    const prepared = await preparedOf(id);
    const parts = prepared?.mixture as { dataset: string; share: number; sequences: number }[];
    t.match(parts, [
      { dataset: large, share: 0.6 },
      { dataset: small, share: 0.3 },
      { dataset: medium, share: 0.1 },
    ]);
    t.equal(
      prepared?.sequences,
      parts.reduce((sum, { sequences }) => sum + sequences, 0),
    );
  });

  await t.test('of one dataset: the bits of a job without a mixture', async (t) => {
    const alone = mixed('a mixture of one', 2, [{ dataset: large, weight: 3 }]);
    const plain = { ...alone, name: 'plain', data: { ...alone.data, mixture: undefined, dataset: large } };
    t.same(await run(alone), await run(JSON.parse(JSON.stringify(plain))));
  });

  await t.test('of preferences: pairs stay together, and each has its reference', async (t) => {
    const pairs = (count: number, word: string) =>
      Array.from({ length: count }, (_, i) =>
        JSON.stringify({ prompt: `${i} `, chosen: `${word} ${i % 7}`, rejected: `${i % 5}?` }),
      ).join('\n');
    const datasets = [pairs(30, 'first'), pairs(11, 'second')].map((lines, i) =>
      client.datasets.create(`pairs ${i}`, lines, 'jsonl'),
    );
    const mixture = (await Promise.all(datasets)).map(({ id }, i) => ({ dataset: id, weight: i + 1 }));
    const spec = (ranks: number): JobSpec => {
      const job = mixed(`pairs on ${ranks}`, ranks, mixture);
      const objective = { type: 'dpo', beta: 0.5, reference: 'initial' } as const;
      return { ...job, train: { ...job.train, sequence_length: 32, global_batch_size: 8, objective } };
    };
    const expected = await run(spec(1));
    t.same(await run(spec(3)), expected);
    const { id } = await client.jobs.create(spec(3));
    await client.jobs.until(id, ({ progress }) => progress.step >= 2, { interval_ms: 5 });
    await client.jobs.pause(id);
    const { state } = await client.jobs.until(id, (job) => job.state === 'paused', { interval_ms: 20 });
    if (state === 'paused') await client.jobs.resume(id, { ranks: 2 });
    t.same(await resultOf(id), expected);
  });

  await t.test('without weights: an epoch has the sequences of all datasets', async (t) => {
    const spec = mixed('an epoch', 2, [{ dataset: small }, { dataset: medium }]);
    const { steps: _, ...train } = spec.train ?? {};
    const { id } = await client.jobs.create({ ...spec, train: { ...train, epochs: 2 } });
    await resultOf(id);
    const prepared = await preparedOf(id);
    const parts = prepared?.mixture as { share: number; sequences: number }[];
    const sequences = Number(prepared?.sequences);
    for (const part of parts) t.equal(part.share, part.sequences / sequences);
    t.equal((await client.jobs.get(id)).spec.train.steps, Math.ceil((2 * sequences) / 40));
  });
});
