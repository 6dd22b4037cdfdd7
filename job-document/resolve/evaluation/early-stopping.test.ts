import t from 'tap';
import type { JobSpec } from '../../../contracts/index.js';
import { resolveSpec } from '../../resolve-spec.js';
import { DATASET, SMALLEST } from '../../testing/documents.js';

const TRAIN = {
  steps: 10,
  sequence_length: 16,
  evaluation: { every_steps: 3 },
  early_stopping: { patience: 2 },
};
const DATA = { ...SMALLEST.data, validation_fraction: 0.1 };

const resolve = (changes: Partial<JobSpec> = {}) =>
  resolveSpec({ ...SMALLEST, data: DATA, train: TRAIN, ...changes }, DATASET);

t.test('the defaults of early stopping, which exports the best checkpoint', async (t) => {
  const { spec, errors } = resolve();
  t.same(errors, []);
  t.same(spec.train.early_stopping, { metric: 'eval_loss', patience: 2, min_delta: 0 });
  t.equal(spec.export.checkpoint, 'best');
  t.equal(resolve({ export: { checkpoint: 'last' } }).spec.export.checkpoint, 'last');
  const again = resolveSpec({ ...spec, name: 'x', model: { config: spec.model.config } }, DATASET);
  t.same([again.errors, again.spec.train], [[], spec.train]);
});

t.test('checkpoints need not coincide with evaluations: improvements are saved', async (t) => {
  t.same(resolve({ checkpoint: { every_seconds: 60, keep: { best: 2 } } }).errors, []);
});

t.test('combinations that cannot work are refused', async (t) => {
  const refused: [
    title: string,
    changes: Partial<JobSpec>,
    pointer: string,
    code: string,
    message: RegExp,
  ][] = [
    [
      'no evaluations',
      { data: SMALLEST.data, train: { ...TRAIN, evaluation: undefined } },
      '/train/early_stopping',
      'evaluation_missing',
      /set data.validation_fraction/,
    ],
    [
      'a patience of all four evaluations',
      { train: { ...TRAIN, early_stopping: { patience: 4 } } },
      '/train/early_stopping/patience',
      'patience_longer_than_training',
      /4 evaluations: set a smaller patience/,
    ],
    [
      'the best checkpoint without early stopping',
      { train: { steps: 10, sequence_length: 16 }, export: { checkpoint: 'best' } },
      '/export/checkpoint',
      'early_stopping_missing',
      /set it, or write last/,
    ],
  ];
  for (const [title, changes, pointer, code, message] of refused)
    t.match(resolve(changes).errors, [{ pointer, code, message }], title);
  t.same(resolve({ train: { ...TRAIN, early_stopping: { patience: 3 } } }).errors, []);
});
