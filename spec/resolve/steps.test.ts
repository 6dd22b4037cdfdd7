import t from 'tap';
import type { Dataset, JobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';
import { DATASET, SMALLEST } from '../testing/documents.js';

/** 62 sequences of 16 tokens, and a rest. */
const LENGTHS = { sequence_length: 16, global_batch_size: 8, micro_batch_size: 4 };

function resolve(
  train: JobSpec['train'],
  data: Partial<JobSpec['data']> = {},
  dataset: Dataset | null = DATASET,
) {
  const document = { ...SMALLEST, data: { ...SMALLEST.data, ...data }, train: { ...LENGTHS, ...train } };
  const { spec, errors } = resolveSpec(document, dataset);
  return {
    train: spec.train,
    errors: errors.map(({ pointer, code, suggestion }) => [pointer, code, suggestion]),
  };
}

t.test('epochs are resolved to the fewest steps that read every sequence', async (t) => {
  const { train, errors } = resolve({ epochs: 1 });
  t.same([train.steps, errors], [Math.ceil(62 / 8), []]);
  t.notOk('epochs' in train, 'the resolved document has the steps');
  t.equal(resolve({ epochs: 4 }).train.steps, 31);
  t.equal(resolve({ epochs: 1 }, { packing: 'whole' }).train.steps, Math.ceil(63 / 8));
  t.equal(resolve({ epochs: 1 }, { validation_fraction: 0.25 }).train.steps, Math.ceil((62 - 16) / 8));
  t.equal(resolve({ epochs: 10, lr_schedule: { type: 'wsd' } }).train.lr_schedule.decay_steps, 8);
});

t.test(
  'epochs of data with an unknown number of sequences are refused, without misleading errors',
  async (t) => {
    const refused = [['/train/epochs', 'sequences_unknown', undefined]];
    const train = { epochs: 1, lr_schedule: { warmup_steps: 50 } };
    t.same(resolve(train, {}, { ...DATASET, format: 'jsonl', num_tokens: null }).errors, refused);
    t.same(resolve(train, {}, null).errors, refused);
  },
);

t.test('exactly one of steps and epochs', async (t) => {
  t.same(resolve({ steps: 5, epochs: 1 }).errors, [['/train/epochs', 'exactly_one_of', undefined]]);
});

t.test('epochs with too many steps are refused with the maximum', async (t) => {
  const dataset = { ...DATASET, num_tokens: 16 * 1_000_000 + 1 };
  t.same(resolve({ epochs: 1000 }, {}, dataset).errors, [['/train/epochs', 'out_of_range', '800']]);
  t.same(resolve({ epochs: 800 }, {}, dataset).errors, []);
});
