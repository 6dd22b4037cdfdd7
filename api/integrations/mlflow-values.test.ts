import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { JobMetric } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { testSpec } from '../../state/testing/jobs.js';
import { MAX_METRICS } from './mlflow-client.js';
import { batchesOf, paramsOf } from './mlflow-values.js';

const golden = join(projectRoot(), 'formats', 'metric-files', 'golden', 'metrics.json');
const { metrics }: { metrics: JobMetric[] } = JSON.parse(readFileSync(golden, 'utf8'));
const [whole] = metrics as [JobMetric];
/** Names that MLflow accepts: mlflow/utils/validation.py. */
const NAME = /^[/\w.\- ]{1,250}$/;

t.test('batches have whole steps in order, and no more values than MLflow accepts', async (t) => {
  const items = Array.from({ length: 500 }, (_, i) => ({ ...whole, step: i + 1 }));
  const batches = batchesOf(items, MAX_METRICS);
  const all = batches.flatMap((batch) => batch.metrics);
  t.same(
    all.map(({ step }) => step),
    all.map(({ step }) => step).toSorted((a, b) => a - b),
  );
  let before = 0;
  for (const { metrics, step } of batches) {
    t.ok(metrics.length <= MAX_METRICS);

    t.equal(metrics[0]?.step, before + 1);
    t.equal(metrics.at(-1)?.step, step);
    before = step ?? 0;
  }
  t.equal(before, 500);
  t.ok(all.every(({ key }) => NAME.test(key)));
});

t.test('a step with too many values is in several batches, the last of which completes it', async (t) => {
  const ratios = { min: 1, median: 2, max: 3 };
  const wide = { ...whole, trust_ratios: Array.from({ length: 400 }, () => ratios) };
  const batches = batchesOf([wide], MAX_METRICS);
  t.same(
    batches.map(({ step }) => step),
    [null, wide.step],
  );
  t.ok(batches.every((batch) => batch.metrics.length <= MAX_METRICS));
});

t.test(
  'values that are not finite are left out and named, and names that a store of files can have',
  async (t) => {
    const odd = { ...whole, step: 8, loss: null, eval_losses: { validation: 1, code: null } };
    const [batch, ...others] = batchesOf([odd, { ...whole, step: 9 }], MAX_METRICS);
    t.same(others, []);
    const valuesAt = (step: number) =>
      batch?.metrics.filter((metric) => metric.step === step).map(({ key }) => key);
    t.ok(valuesAt(8)?.includes('eval_loss'));
    t.ok(valuesAt(9)?.includes('loss'));
    for (const name of ['loss', 'eval_loss.code']) t.notOk(valuesAt(8)?.includes(name), name);
    t.ok(batch?.metrics.every(({ value }) => Number.isFinite(value)));
    t.match(batch, { step: 9, nonFinite: 'step 8: loss, eval_loss.code' });
    t.equal(batchesOf([whole], MAX_METRICS)[0]?.nonFinite, null);
  },
);

t.test('params are the fields of the document', async (t) => {
  const spec = testSpec('ds_01J00000000000000000000000', {
    train: { steps: 7, optimizer: { type: 'lion', betas: [0.5, 0.6] } },
    data: { dataset: 'ds_01J00000000000000000000000', chat_template: '🙂'.repeat(600) },
  });
  const params = Object.fromEntries(paramsOf(spec).map(({ key, value }) => [key, value]));
  t.match(params, {
    'train.steps': '7',
    'train.optimizer.type': 'lion',
    'train.optimizer.betas': '[0.5,0.6]',
    'model.init_from': 'null',
    'zero.stage': '2',
    'data.chat_template': '🙂'.repeat(250),
  });
  t.notOk(Object.keys(params).some((key) => key.startsWith('train.overrides')));
  for (const [key, value] of Object.entries(params)) {
    t.match(key, NAME);
    t.ok(value.length > 0 && value.length <= 500, key);
  }
});
