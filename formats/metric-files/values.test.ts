/** No measured field of an item is left out of files. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import t from 'tap';
import type { JobMetric } from '../../contracts/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { valuesOf } from './values.js';

/** Fields that identify an item. */
const IDENTITY = ['seq', 'position', 'kind', 'at', 'step', 'epoch'];

t.test('every field of the contract that is measured has values', async (t) => {
  const { components } = load(readFileSync(join(projectRoot(), 'openapi.yaml'), 'utf8')) as {
    components: { schemas: { JobMetric: { properties: Record<string, unknown> } } };
  };
  const file = join(projectRoot(), 'formats', 'metric-files', 'golden', 'metrics.json');
  const { metrics } = JSON.parse(readFileSync(file, 'utf8')) as { metrics: JobMetric[] };
  const reinforcement = { reward: 0.5, 'score/exact': 0.25 }; // no golden file has these
  const whole = Object.assign({ reinforcement }, ...metrics) as JobMetric;
  const known = valuesOf(whole).length;
  for (const field of Object.keys(components.schemas.JobMetric.properties)) {
    const { [field as 'loss']: _left, ...rest } = whole;
    t.ok(field in whole, field);
    const isShown = valuesOf(rest as JobMetric).length < known;
    t.equal(isShown, !IDENTITY.includes(field), field);
  }
  t.match(new Map(valuesOf(whole)), new Map([['reinforcement/score/exact', 0.25]]));
});
