import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { JobMetric } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { testSpec } from '../../state/testing/jobs.js';
import { MAX_METRICS } from './mlflow-client.js';
import { batchesOf, paramsOf } from './mlflow-values.js';

const golden = join(projectRoot(), 'platform', 'metric-files', 'golden', 'metrics.json');
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

t.test('values that are not finite, and names that a store of files can have', async (t) => {
  const [{ metrics: sent }] = batchesOf(
    [{ ...whole, loss: null, eval_losses: { validation: 1, code: null } }],
    MAX_METRICS,
  ) as [ReturnType<typeof batchesOf>[number]];
  const sentValue = (name: string) => sent.find(({ key }) => key === name)?.value;
  t.equal(sentValue('loss'), 'NaN');
  t.equal(sentValue('eval_loss'), 1);
  t.equal(sentValue('eval_loss.code'), 'NaN');
});

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
