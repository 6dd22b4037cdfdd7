import t from 'tap';
import type { Dataset, JobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';
import { DATASET, SMALLEST } from '../testing/documents.js';

type Train = NonNullable<JobSpec['train']>;
type Objective = NonNullable<Train['objective']>;

const PAIRS: Dataset = {
  ...DATASET,
  format: 'jsonl',
  num_documents: 40,
  num_preferences: 40,
  num_tokens: null,
};
const LABELLED: Dataset = { ...PAIRS, num_preferences: 0, num_labelled: 40 };
const TEXTS: Dataset = { ...PAIRS, num_preferences: 0 };

function resolve(
  objective: Objective | undefined,
  train: Partial<Train> = {},
  { dataset = PAIRS, data = {} }: { dataset?: Dataset; data?: Partial<JobSpec['data']> } = {},
) {
  const document = { ...SMALLEST, data: { ...SMALLEST.data, ...data } };
  return resolveSpec({ ...document, train: { steps: 10, ...train, objective } }, dataset);
}

t.test('each type has its fields, with defaults', async (t) => {
  const defaults: [Objective['type'], object | undefined][] = [
    ['sft', undefined],
    ['dpo', { type: 'dpo', beta: 0.1, label_smoothing: 0, reference: 'initial' }],
    ['ipo', { type: 'ipo', beta: 0.1, reference: 'initial' }],
    ['orpo', { type: 'orpo', beta: 0.1 }],
    ['kto', { type: 'kto', beta: 0.1, desirable_weight: 1, undesirable_weight: 1, reference: 'initial' }],
    ['simpo', { type: 'simpo', beta: 2, gamma: 1 }],
  ];
  for (const [type, expected] of defaults) {
    const { spec, errors } = resolve({ type }, {}, { dataset: type === 'sft' ? TEXTS : PAIRS });
    t.same(errors, [], type);
    t.same(spec.train.objective, expected, type);
    t.equal(spec.data.packing, 'whole');
    // The resolved document is a document: a fork begins with it.
    if (expected)
      t.same(resolve(spec.train.objective, {}, { data: spec.data }).spec.train.objective, expected);
  }
  t.notOk('objective' in resolve({ type: 'sft' }).spec.train);
  t.notOk('objective' in resolve(undefined).spec.train);
  t.match(resolve({ type: 'dpo', beta: 0.3, label_smoothing: 0.1 }).spec.train.objective, {
    beta: 0.3,
    label_smoothing: 0.1,
  });
});

t.test('the reference is the base where the adapter is all that is trained', async (t) => {
  const reference = (objective: Objective, train: Partial<Train>) =>
    resolve(objective, train).spec.train.objective?.reference;
  const adapted = { adapter: {} };
  const more = { adapter: { modules_to_save: ['lm_head'] } };
  t.equal(reference({ type: 'dpo' }, adapted), 'base');
  t.equal(reference({ type: 'kto' }, more), 'initial');
  t.equal(reference({ type: 'dpo', reference: 'initial' }, adapted), 'initial');
  t.equal(reference({ type: 'orpo' }, adapted), undefined);
  t.same(resolve({ type: 'dpo', reference: 'initial' }, adapted).errors, []);
  t.match(resolve({ type: 'ipo', reference: 'base' }).errors, [
    {
      pointer: '/train/objective/reference',
      code: 'adapter_missing',
      message: /write initial/,
      suggestion: 'initial',
    },
  ]);
  t.match(resolve({ type: 'ipo', reference: 'base' }, more).errors, [
    {
      pointer: '/train/objective/reference',
      code: 'reference_not_kept',
      message: /lm_head/,
      suggestion: 'initial',
    },
  ]);
});

t.test('fields of other types are refused by name', async (t) => {
  const all = {
    beta: 1,
    label_smoothing: 0.1,
    gamma: 1,
    desirable_weight: 1,
    undesirable_weight: 1,
    reference: 'initial',
  } as const;
  const refused: Record<Exclude<Objective['type'], 'grpo'>, (keyof typeof all)[]> = {
    sft: ['beta', 'label_smoothing', 'gamma', 'desirable_weight', 'undesirable_weight', 'reference'],
    dpo: ['gamma', 'desirable_weight', 'undesirable_weight'],
    ipo: ['label_smoothing', 'gamma', 'desirable_weight', 'undesirable_weight'],
    orpo: ['label_smoothing', 'gamma', 'desirable_weight', 'undesirable_weight', 'reference'],
    kto: ['label_smoothing', 'gamma'],
    simpo: ['label_smoothing', 'desirable_weight', 'undesirable_weight', 'reference'],
  };
  for (const type of Object.keys(refused) as (keyof typeof refused)[]) {
    const { spec, errors } = resolve({ type, ...all }, {}, { dataset: type === 'sft' ? TEXTS : PAIRS });
    t.same(
      errors.map(({ pointer, code }) => `${pointer} ${code}`),
      refused[type].map((name) => `/train/objective/${name} field_without_effect`),
      type,
    );
    for (const name of refused[type]) t.notOk(name in (spec.train.objective ?? {}));
  }
});

t.test('kto needs two sequences in a micro-batch, and no unit is cut', async (t) => {
  t.match(resolve({ type: 'kto' }, { micro_batch_size: 1 }).errors, [
    { pointer: '/train/micro_batch_size', code: 'out_of_range', suggestion: '2' },
  ]);
  t.same(resolve({ type: 'dpo' }, { micro_batch_size: 1 }).errors, []);
  t.match(resolve({ type: 'dpo' }, {}, { data: { packing: 'split' } }).errors, [
    { pointer: '/data/packing', code: 'field_without_effect', suggestion: 'whole' },
  ]);
});

t.test('an objective reads its own kind of documents', async (t) => {
  const tokens: Dataset = { ...DATASET, format: 'tokens', num_documents: 9, max_token: 255 };
  const mixed: Dataset = { ...PAIRS, num_preferences: 30, num_labelled: 10 };
  const some: Dataset = { ...PAIRS, num_preferences: 30 };
  const accepted: [Objective | undefined, Dataset][] = [
    [undefined, TEXTS],
    [undefined, DATASET],
    [{ type: 'orpo' }, PAIRS],
    [{ type: 'kto' }, LABELLED],
    [{ type: 'kto' }, PAIRS],
    [{ type: 'kto' }, mixed],
  ];
  for (const [objective, dataset] of accepted) t.same(resolve(objective, {}, { dataset }).errors, []);
  const refused: [Objective | undefined, Dataset, code: string, message: RegExp][] = [
    [undefined, PAIRS, 'dataset_has_preferences', /40 pairs of completions.*"type": "dpo"/],
    [{ type: 'sft' }, LABELLED, 'dataset_has_preferences', /40 labelled completions.*"type": "kto"/],
    [undefined, mixed, 'dataset_has_preferences', /30 pairs of completions and 10 labelled/],
    [{ type: 'dpo' }, LABELLED, 'dataset_without_preferences', /objective.type to kto/],
    [{ type: 'simpo' }, some, 'dataset_without_preferences', /10 of the 40 documents.*"chosen": …/],
    [{ type: 'dpo' }, tokens, 'dataset_without_preferences', /format=tokens.*format=jsonl/],
    [{ type: 'kto' }, DATASET, 'dataset_without_preferences', /format=text.*"label": true/],
    [{ type: 'kto' }, some, 'dataset_without_preferences', /10 of the 40/],
  ];
  for (const [objective, dataset, code, message] of refused)
    t.match(resolve(objective, {}, { dataset }).errors, [{ pointer: '/data/dataset', code, message }]);
});

t.test('datasets to evaluate on have the same kind of documents', async (t) => {
  const evaluation = { datasets: [{ name: 'a', dataset: 'ds_00000000000000000000000001' }] };
  const resolved = (objective: Objective | undefined, dataset: Dataset, held: Dataset | null) =>
    resolveSpec({ ...SMALLEST, train: { steps: 10, evaluation, objective } }, dataset, {
      evaluation: [held],
    });
  t.same(resolved({ type: 'dpo' }, PAIRS, PAIRS).errors, []);
  t.same(resolved({ type: 'dpo' }, PAIRS, null).errors, []);
  const at = '/train/evaluation/datasets/0/dataset';
  t.match(resolved({ type: 'dpo' }, PAIRS, TEXTS).errors, [
    { pointer: at, code: 'dataset_without_preferences' },
  ]);
  t.match(resolved(undefined, TEXTS, PAIRS).errors, [{ pointer: at, code: 'dataset_has_preferences' }]);
});
