import t from 'tap';
import type { Dataset, JobSpec } from '../../contracts/index.js';
import { datasetsOf } from '../evaluation.js';
import { trainingDatasetsOf, trainingSectionsOf, weightsOf } from '../mixture.js';
import { resolveSpec } from '../resolve-spec.js';
import { DATASET, SMALLEST } from '../testing/documents.js';
import { samplesPerEpoch } from './data.js';

type Data = JobSpec['data'];
type Mixture = NonNullable<Data['mixture']>;

const dataset = (index: number, fields: Partial<Dataset> = {}): Dataset => ({
  ...DATASET,
  id: `ds_${String(index).padStart(26, '0')}`,
  ...fields,
});
const [A, B] = [dataset(1), dataset(2, { num_tokens: 500, bytes: 500 })];
const TRAIN = { steps: 10, sequence_length: 16 };

function resolve(
  mixture: Mixture,
  datasets: (Dataset | null)[] = [A, B],
  { data = {}, train = {} }: { data?: Partial<Data>; train?: JobSpec['train'] } = {},
) {
  const document = { ...SMALLEST, data: { mixture, ...data }, train: { ...TRAIN, ...train } };
  return resolveSpec(document, datasets);
}

const entries = (...weights: (number | undefined)[]): Mixture =>
  weights.map((weight, i) => ({ dataset: dataset(i + 1).id, ...(weight !== undefined && { weight }) }));

t.test('a mixture stays in the resolved document, which resolves to itself', async (t) => {
  for (const mixture of [entries(0.7, 0.3), entries(undefined, undefined)]) {
    const { spec, errors } = resolve(mixture);
    t.same(errors, []);
    t.strictSame(spec.data.mixture, mixture);
    t.notOk('dataset' in spec.data);
    const model = { config: spec.model.config };
    const again = resolveSpec({ ...spec, name: 'x', model }, [A, B]);
    t.same(again.errors, []);
    t.strictSame(again.spec.data, spec.data);
    t.same(datasetsOf(spec), [A.id, B.id]);
    const { mixture: _, ...shared } = spec.data;
    t.same(
      trainingSectionsOf(spec.data),
      [A, B].map(({ id }) => ({ ...shared, dataset: id })),
    );
  }
  const single = resolveSpec(SMALLEST, DATASET).spec.data;
  t.same(trainingDatasetsOf(single), [{ dataset: DATASET.id }]);
  t.same(trainingSectionsOf(single), [single]);
});

t.test('weights are integers with the given proportions, by default the sizes', async (t) => {
  const weights = (mixture: Mixture, samples = [40, 7]) => weightsOf(resolve(mixture).spec.data, samples);
  t.same(weights(entries(0.7, 0.3)), [700, 300]);
  t.same(weights(entries(1000, 0.001)), [1_000_000, 1]);
  t.same(weights(entries(0.57, 1.005)), [570, 1005], 'products of doubles are not exact');
  t.same(weights(entries(undefined, undefined)), [40, 7]);
  t.same(weightsOf(resolveSpec(SMALLEST, DATASET).spec.data, [12]), [12]);
});

t.test('an epoch has the samples of all datasets, of each without its share for validation', async (t) => {
  const samples = (datasets: (Dataset | null)[], fraction = 0) => {
    const { spec } = resolve(entries(1, 1), datasets, { data: { validation_fraction: fraction } });
    return samplesPerEpoch(datasets, spec.data, spec.train);
  };
  t.equal(samples([A, B]), 62 + 31);
  t.equal(samples([A, B], 0.1), 62 - 6 + 31 - 3);
  t.equal(samples([A, null]), null);
  const { spec } = resolve(entries(3, 1), [A, B], {
    train: { steps: undefined as never, epochs: 2, global_batch_size: 8, micro_batch_size: 8 },
  });
  t.equal(spec.train.steps, Math.ceil((2 * 93) / 8));
});

t.test('rules of a mixture', async (t) => {
  const lines = (index: number, fields: Partial<Dataset> = {}) =>
    dataset(index, { format: 'jsonl', num_tokens: null, num_documents: 5, ...fields });
  const refused = (...args: Parameters<typeof resolve>) =>
    resolve(...args).errors.map(({ pointer, code, suggestion }) => [pointer, code, suggestion]);
  t.same(refused(entries(1, undefined)), [['/data/mixture/1/weight', 'missing_field', undefined]]);
  t.same(refused(entries(0.3333, 0.0001)), [
    ['/data/mixture/0/weight', 'out_of_range', '0.333'],
    ['/data/mixture/1/weight', 'out_of_range', '0.001'],
  ]);
  t.same(refused([...entries(1, 1), { dataset: A.id, weight: 2 }], [A, B, A]), [
    ['/data/mixture/2/dataset', 'mixture_dataset_twice', undefined],
  ]);
  t.same(refused(entries(1, 1), [A, lines(2)]), [
    ['/data/mixture/1/dataset', 'mixture_formats_differ', undefined],
  ]);
  t.same(refused([{ dataset: A.id, format: 'text' }, ...entries(undefined, undefined).slice(1)]), [
    ['/data/mixture/0/format', 'field_without_effect', undefined],
  ]);
  t.same(refused(entries(1, 1), [A, dataset(2, { num_tokens: 16 })]), [
    ['/train/sequence_length', 'sequence_longer_than_data', '15'],
  ]);
  t.same(refused(entries(1, 1), [A, dataset(2, { format: 'tokens', max_token: 300 })]), [
    ['/data/mixture/1/dataset', 'vocab_too_small', undefined],
    ['/data/mixture/1/dataset', 'mixture_formats_differ', undefined],
  ]);
});

t.test('lines of texts and chats can be mixed, preferences only for their objective', async (t) => {
  const lines = { format: 'jsonl', num_tokens: null, num_documents: 5 } as const;
  const [texts, chats] = [dataset(1, lines), dataset(2, { ...lines, num_chats: 5 })];
  const pairs = dataset(2, { ...lines, num_preferences: 5 });
  const chatTemplate = { chat_template: '{{ messages[0].content }}' };
  const mixed = resolve(entries(1, 1), [texts, chats], { data: chatTemplate });
  t.same(mixed.errors, []);
  t.match(mixed.spec.data, { packing: 'whole', ...chatTemplate });
  const codes = (...args: Parameters<typeof resolve>) =>
    resolve(...args).errors.map(({ pointer, code }) => `${pointer} ${code}`);
  t.same(codes(entries(1, 1), [texts, chats]), []);
  t.same(codes(entries(1, 1), [texts, pairs]), ['/data/mixture/1/dataset dataset_has_preferences']);
  const train = { objective: { type: 'dpo', reference: 'initial' } } as const;
  t.same(codes(entries(1, 1), [texts, pairs], { train }), [
    '/data/mixture/0/dataset dataset_without_preferences',
  ]);
  t.same(codes(entries(1, 1), [dataset(1, { ...lines, num_preferences: 5 }), pairs], { train }), []);
});
