import t from 'tap';
import { collect } from '../../client/index.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack } from '../support/stack.js';

const STEPS = 24;
const EVERY = 5;

t.test(
  'evaluation on validation data: the same losses on any number of ranks, interrupted or not',
  async (t) => {
    const { client } = await startStack(t);
    const dataset = (await client.datasets.create('openapi', sampleText())).id;
    const evaluated = (name: string, ranks: number, steps = STEPS) => {
      const job = smallJob({ name, dataset, steps, ranks });
      return {
        ...job,
        data: { ...job.data, validation_fraction: 0.1 },
        train: { ...job.train, steps, eval_every_steps: EVERY },
      };
    };
    const lossesOf = async (id: string) => {
      const final = await client.jobs.until(id, () => false);
      t.equal(final.state, 'succeeded', JSON.stringify(final.failure));
      const metrics = await collect(client.jobs.metrics(id));
      const losses = metrics.flatMap(({ step, eval_loss }) =>
        eval_loss === undefined ? [] : [[step, eval_loss]],
      );
      return { losses, digest: final.export?.state_digest };
    };

    const expected = await lossesOf((await client.jobs.create(evaluated('one rank', 1))).id);
    t.same(
      expected.losses.map(([step]) => step),
      [5, 10, 15, 20, 24],
    );
    const [first, last] = [expected.losses[0]?.[1] ?? 0, expected.losses.at(-1)?.[1] ?? 9];
    t.ok(last < first, `the validation loss falls: ${first} to ${last}`);
    t.same(await lossesOf((await client.jobs.create(evaluated('three ranks', 3))).id), expected);

    const { id } = await client.jobs.create(evaluated('paused', 2));
    await client.jobs.until(id, (job) => job.progress.step >= 7, { interval_ms: 20 });
    await client.jobs.pause(id);
    await client.jobs.until(id, (job) => job.state === 'paused', { interval_ms: 20 });
    await client.jobs.resume(id, { ranks: 4 });
    t.same(await lossesOf(id), expected);

    const plain = smallJob({ name: 'no validation split', dataset, steps: STEPS, ranks: 2 });
    const { losses, digest } = await lossesOf((await client.jobs.create(plain)).id);
    t.same(losses, []);
    t.not(digest, expected.digest, 'validation data is not trained on');

    const told = (await collect(client.jobs.events(id))).filter(({ type }) => type === 'evaluation.finished');
    t.same(
      told.map(({ data }) => [data.step, data.loss]),
      expected.losses,
    );
  },
);
