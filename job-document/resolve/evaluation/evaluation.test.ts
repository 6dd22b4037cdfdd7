import t from 'tap';
import { figureOf, metricOf } from '../../../contracts/evaluation-metrics.js';
import type { Dataset, JobSpec } from '../../../contracts/index.js';
import { datasetsOf, evaluationSectionsOf, evaluationsOf } from '../../evaluation.js';
import { resolveSpec } from '../../resolve-spec.js';
import { DATASET, SMALLEST } from '../../testing/documents.js';

type Evaluation = NonNullable<NonNullable<JobSpec['train']>['evaluation']>;
type Entries = NonNullable<Evaluation['datasets']>;

const dataset = (index: number, fields: Partial<Dataset> = {}): Dataset => ({
  ...DATASET,
  id: `ds_${String(index).padStart(26, '0')}`,
  ...fields,
});
const [CODE, CHAT] = [dataset(1), dataset(2)];
const NAMED: Entries = [
  { name: 'code', dataset: CODE.id },
  { name: 'chat-1', dataset: CHAT.id },
];
const VALIDATED = { ...SMALLEST.data, validation_fraction: 0.1 };

function resolve(
  datasets: Entries = NAMED,
  { train = {}, ...changes }: Partial<JobSpec> = {},
  evaluation: (Dataset | null)[] = [CODE, CHAT],
  training: Dataset = DATASET,
) {
  const document = { ...SMALLEST, ...changes, train: { steps: 1000, evaluation: { datasets }, ...train } };
  return resolveSpec(document, training, { evaluation });
}

t.test('named datasets are evaluated after the validation data, as the training data is read', async (t) => {
  const { spec, errors } = resolve();
  t.same(errors, []);
  t.same(spec.train.evaluation, { every_steps: 100, datasets: NAMED });
  t.same(
    evaluationsOf(spec).map((name) => metricOf(name, spec.train)),
    ['eval_loss/code', 'eval_loss/chat-1'],
  );
  const validated = resolve(NAMED, {
    data: VALIDATED,
    train: { evaluation: { every_steps: 5, datasets: NAMED } },
  });
  t.same(validated.errors, []);
  t.equal(validated.spec.train.evaluation?.every_steps, 5);
  t.same(evaluationsOf(validated.spec), ['validation', 'code', 'chat-1']);
  t.same(
    evaluationSectionsOf(validated.spec),
    [CODE, CHAT].map(({ id }) => ({ ...validated.spec.data, dataset: id, validation_fraction: 0 })),
  );
  t.same(datasetsOf(validated.spec), [DATASET.id, CODE.id, CHAT.id]);
  const twice = [...NAMED, { name: 'training', dataset: DATASET.id }];
  t.same(datasetsOf(resolve(twice, {}, [CODE, CHAT, DATASET]).spec), [DATASET.id, CODE.id, CHAT.id]);
});

t.test('a resolved document resolves to itself', async (t) => {
  const train = { early_stopping: { patience: 2 } };
  const { spec } = resolve(NAMED, { train, checkpoint: { keep: { best: 1 } } });
  const again = resolveSpec({ ...spec, name: 'x', model: { config: spec.model.config } }, DATASET, {
    evaluation: [CODE, CHAT],
  });
  t.same([again.errors, again.spec.train, again.spec.checkpoint], [[], spec.train, spec.checkpoint]);
});

t.test('losses by metric', async (t) => {
  const losses = { validation: 1, code: null, eval_loss: 3 };
  t.equal(figureOf(losses, 'eval_loss'), 1);
  t.equal(figureOf(losses, 'eval_loss/code'), null);
  t.equal(figureOf(losses, 'eval_loss/eval_loss'), 3);
  for (const metric of ['loss', 'code', 'validation', 'eval_loss/validation', 'eval_loss/chat'])
    t.equal(figureOf(losses, metric), undefined, metric);
  t.equal(figureOf(undefined, 'eval_loss'), undefined);
});

t.test('early stopping and the best checkpoints may name any metric of the job', async (t) => {
  const stopping = (metric?: string) => ({ early_stopping: { patience: 2, ...(metric && { metric }) } });
  const best = (bestMetric?: string) => ({
    keep: { best: 1, ...(bestMetric && { best_metric: bestMetric }) },
  });
  const metrics = (data: JobSpec['data'], train: JobSpec['train'], checkpoint: JobSpec['checkpoint']) => {
    const { spec, errors } = resolve(NAMED, { data, train, checkpoint });
    t.same(errors, []);
    return [spec.train.early_stopping?.metric, spec.checkpoint.keep.best_metric];
  };
  const code = 'eval_loss/code';
  t.same(metrics(SMALLEST.data, stopping(), best()), [code, code], 'the first one by default');
  t.same(metrics(VALIDATED, stopping(), best()), ['eval_loss', 'eval_loss']);
  t.same(metrics(VALIDATED, stopping(code), best()), [code, code]);
  t.same(metrics(VALIDATED, stopping(code), best('eval_loss/chat-1')), [code, 'eval_loss/chat-1']);

  const message = 'the job has no metric eval_loss; write one of eval_loss/code, eval_loss/chat-1';
  t.match(resolve(NAMED, { train: stopping('eval_loss') }).errors, [
    { pointer: '/train/early_stopping/metric', code: 'unknown_value', message },
  ]);
  t.match(resolve(NAMED, { checkpoint: best('eval_loss/cod') }).errors, [
    { pointer: '/checkpoint/keep/best_metric', code: 'unknown_value', suggestion: code },
  ]);
  t.match(resolve(NAMED, { checkpoint: { keep: { best_metric: code } } }).errors, [
    { pointer: '/checkpoint/keep/best_metric', code: 'field_without_effect', message: /set keep.best/ },
  ]);
  t.match(resolve([], { train: stopping() }).errors, [
    { pointer: '/train/evaluation', code: 'field_without_effect' },
    { pointer: '/train/early_stopping', code: 'evaluation_missing', message: /train.evaluation.datasets/ },
  ]);
});

const AT = '/train/evaluation/datasets';

t.test('datasets that cannot be evaluated on are refused by field', async (t) => {
  const [code = { name: '' }] = NAMED;
  const tokens = dataset(0, { format: 'tokens', max_token: 255 });
  const refused: [title: string, errors: object[], ...Parameters<typeof resolve>][] = [
    [
      'the reserved name',
      [{ pointer: `${AT}/0/name`, code: 'evaluation_name_taken', message: /data.validation_fraction/ }],
      [{ ...code, name: 'validation' }],
    ],
    [
      'a name twice',
      [{ pointer: `${AT}/1/name`, code: 'evaluation_name_taken', message: /\/datasets\/0; choose another/ }],
      [code, { ...code, dataset: CHAT.id }],
    ],
    [
      'shorter than a sequence',
      [
        {
          pointer: `${AT}/1/dataset`,
          code: 'sequence_longer_than_data',
          message: /needs 129 tokens.* has 128/,
        },
      ],
      NAMED,
      {},
      [CODE, dataset(2, { num_tokens: 128 })],
    ],
    [
      'texts beside tokens',
      [{ pointer: `${AT}/0/dataset`, code: 'tokenizer_missing', message: /upload its tokens/ }],
      [code],
      {},
      [CODE],
      tokens,
    ],
    [
      'tokens that the model does not have',
      [{ pointer: `${AT}/0/dataset`, code: 'vocab_too_small' }],
      [code],
      {},
      [dataset(1, { format: 'tokens', max_token: 256 })],
    ],
    [
      'a format of a dataset',
      [{ pointer: `${AT}/0/format`, code: 'field_without_effect' }],
      [{ ...code, format: 'text' }],
    ],
  ];
  for (const [title, errors, ...input] of refused) t.match(resolve(...input).errors, errors, title);
  for (const [title, errors, ...input] of refused)
    t.equal(resolve(...input).errors.length, errors.length, title);
});

t.test('what is unknown about a dataset is not refused; chats have the template of the data', async (t) => {
  t.same(resolve(NAMED, {}, [null, null]).errors, []);
  const chats = dataset(1, { format: 'jsonl', num_tokens: null, num_documents: 9, num_chats: 5 });
  const data = { ...SMALLEST.data, chat_template: '{{ messages }}' };
  const { spec, errors } = resolve(NAMED, { data }, [chats, CHAT]);
  t.same(errors, []);
  t.equal(spec.data.chat_template, '{{ messages }}');
  t.match(resolve(NAMED, { data }).errors, [
    { pointer: '/data/chat_template', code: 'field_without_effect' },
  ]);
});
