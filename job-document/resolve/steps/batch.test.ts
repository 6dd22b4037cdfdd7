import t from 'tap';
import type { Dataset, JobSpec } from '../../../contracts/index.js';
import { type ResolveOptions, resolveSpec } from '../../resolve-spec.js';
import { DATASET, SMALLEST } from '../../testing/documents.js';

const LENGTH = 16;
const text = (samples: number): Dataset => ({
  ...DATASET,
  bytes: samples * LENGTH + 1,
  num_tokens: samples * LENGTH + 1,
});
const lines = (bytes: number): Dataset => ({ ...DATASET, format: 'jsonl', bytes, num_tokens: null });

function resolve(dataset: Dataset | null, train: JobSpec['train'] = {}, options: ResolveOptions = {}) {
  const length = train.epochs === undefined ? { steps: 10 } : {};
  const given = { ...length, sequence_length: LENGTH, global_batch_size: 'auto', ...train };
  return resolveSpec({ ...SMALLEST, train: given }, dataset, options);
}

t.test('auto is the power of two nearest to 0.2 % of the samples', async (t) => {
  const sizes = [10, 5_000, 5_600, 5_700, 20_000, 100_000, 10_000_000].map((samples) => {
    const { spec, errors } = resolve(text(samples));
    t.same(errors, []);
    return [spec.train.global_batch_size, spec.train.micro_batch_size];
  });
  t.same(sizes, [
    [8, 2],
    [8, 2],
    [8, 2],
    [16, 4],
    [32, 4],
    [256, 4],
    [256, 4],
  ]);
});

t.test('samples that are not counted are estimated by the size of the data', async (t) => {
  const auto = (...input: Parameters<typeof resolve>) => resolve(...input).spec.train.global_batch_size;
  const bytes = 16_000 * LENGTH;
  t.equal(auto(lines(bytes)), 32, 'one byte a token');
  t.equal(auto(null, {}, { bytes }), 32, 'the same before the object is copied');
  t.equal(auto(null), 16, 'the default, if nothing is known');
  const uploaded = {
    ...DATASET,
    format: 'tokens',
    num_tokens: bytes,
    bytes: 2 * bytes,
    max_token: 9,
  } as const;
  t.equal(auto(uploaded), 32);
  const epochs = resolve(lines(bytes), { epochs: 2 }).spec.train;
  t.match(epochs, { global_batch_size: 32, epochs: 2 });
});

t.test('auto counts the samples of all datasets of a mixture', async (t) => {
  const auto = (datasets: (Dataset | null)[], options: ResolveOptions = {}) => {
    const mixture: JobSpec['data']['mixture'] = [
      { dataset: text(1).id },
      { uri: 's3://a/b', format: 'jsonl' },
    ];
    const train = { steps: 10, sequence_length: LENGTH, global_batch_size: 'auto' } as const;
    const { spec } = resolveSpec({ ...SMALLEST, data: { mixture }, train }, datasets, options);
    return spec.train.global_batch_size;
  };
  t.equal(auto([text(20_000), lines(40_000 * LENGTH)]), 128);
  t.equal(
    auto([text(20_000), null], { bytes: 40_000 * LENGTH }),
    128,
    'the same before the object is copied',
  );
  t.equal(auto([text(20_000), null]), 16, 'the default, if one is unknown');
});

t.test('auto counts the units of preferences', async (t) => {
  const dataset = { ...lines(1_000), num_documents: 16_000, num_preferences: 16_000 };
  const { spec } = resolve(dataset, { objective: { type: 'dpo' } });
  t.equal(spec.train.global_batch_size, 32);
});

t.test('a micro-batch of the document has to divide the number', async (t) => {
  const { errors } = resolve(text(10), { micro_batch_size: 16 });
  t.match(errors, [{ pointer: '/train/micro_batch_size', code: 'micro_batch_not_divisor', suggestion: '8' }]);
});

t.test('without a number the micro-batch is the largest divisor up to 4', async (t) => {
  const sizes = [1, 2, 3, 6, 7, 8, 10, 12].map((globalBatchSize) => {
    const { spec, errors } = resolve(text(1_000), { global_batch_size: globalBatchSize });
    t.same(errors, []);
    return spec.train.micro_batch_size;
  });
  t.same(sizes, [1, 2, 3, 3, 1, 4, 2, 4]);
});
