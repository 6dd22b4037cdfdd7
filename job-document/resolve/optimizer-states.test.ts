import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { zeroMemory } from '../estimate/zero-memory.js';
import { resolveSpec } from '../resolve-spec.js';
import { DATASET, SMALLEST } from '../testing/documents.js';

const resolve = (changes: Partial<JobSpec>) => resolveSpec({ ...SMALLEST, ...changes }, DATASET);
const train = { steps: 10, sequence_length: 16 };

t.test('the default decay; without the section there is no average', async (t) => {
  t.equal(resolve({ train }).spec.train.ema, undefined);
  const { spec, errors } = resolve({ train: { ...train, ema: {} }, export: { weights: 'ema' } });
  t.same(errors, []);
  t.same(spec.train.ema, { decay: 0.999 });
  t.equal(spec.export.weights, 'ema');
  t.equal(resolve({ train: { ...train, ema: { decay: 0.5 } } }).spec.export.weights, 'trained');
});

t.test('the export of an average that the job does not keep is refused', async (t) => {
  t.match(resolve({ train, export: { weights: 'ema' } }).errors, [
    { pointer: '/export/weights', code: 'weights_missing', suggestion: 'trained', message: /train\.ema/ },
  ]);
});

t.test('the average takes as much memory as a moment', async (t) => {
  const moments = (ema?: object) =>
    zeroMemory(resolve({ train: { ...train, ...(ema && { ema }) } }).spec, 2, 0, 'cpu').moments;
  t.equal(moments({}), moments() * 1.5, "AdamW's two moments, and a third state");
});
