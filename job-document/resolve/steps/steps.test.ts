import t from 'tap';
import type { Dataset, JobSpec } from '../../../contracts/index.js';
import { resolveSpec } from '../../resolve-spec.js';
import { DATASET, SMALLEST } from '../../testing/documents.js';
import { patchSpec } from '../patch.js';
import { isTrainable, resolveSteps } from './steps.js';

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
    spec,
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

const UNCOUNTED = { ...DATASET, format: 'jsonl', num_tokens: null } as const;

t.test(
  'epochs stay until the samples are counted, then the document is the one that a known number makes',
  async (t) => {
    const train = {
      epochs: 3,
      lr_schedule: { type: 'wsd', warmup_steps: 2 },
      overrides: [{ step: 20, lr: 0.1 }],
    } satisfies JobSpec['train'];
    const data = { packing: 'split' } as const;
    const counted = resolve(train, data);
    for (const dataset of [UNCOUNTED, null]) {
      const { spec, train: waiting, errors } = resolve(train, data, dataset);
      t.same(errors, []);
      t.equal(waiting.epochs, 3);
      t.notOk('steps' in waiting || 'decay_steps' in waiting.lr_schedule);
      t.notOk(isTrainable(spec));
      const completed = resolveSteps(spec, { samples: 62, continues: null });
      t.same(completed.errors, []);
      t.ok(isTrainable(completed.spec));
      t.strictSame(completed.spec.train, counted.train);
      t.strictSame(resolveSteps(completed.spec, { samples: 7, continues: null }), completed, 'only once');
    }
  },
);

t.test('rules about steps are checked when the samples are counted', async (t) => {
  const train = {
    epochs: 1,
    lr_schedule: { warmup_steps: 50 },
    overrides: [{ step: 8, lr: 0.1 }],
    evaluation: { every_steps: 4 },
    early_stopping: { patience: 3 },
  };
  const continues = { id: 'ckpt_1', step: 8 };
  const { spec, errors } = resolve(train, { validation_fraction: 0.1 }, UNCOUNTED);
  t.same(errors, [], 'unknown steps break none');
  const broken = resolveSteps(spec, { samples: 62, continues }).errors;
  t.same(
    broken.map(({ pointer, code, suggestion }) => [pointer, code, suggestion]),
    [
      ['/train/lr_schedule/warmup_steps', 'warmup_longer_than_training', '8'],
      ['/train/overrides/0/step', 'override_after_training', '7'],
      ['/train/early_stopping/patience', 'patience_longer_than_training', '1'],
      ['/train/steps', 'steps_not_beyond_checkpoint', '9'],
    ],
  );
  t.same(resolveSteps(spec, { samples: 80 * 8, continues }).errors, []);
  const endless = resolve({ epochs: 1000 }, {}, UNCOUNTED).spec;
  t.match(resolveSteps(endless, { samples: 1_000_000, continues: null }), {
    spec: endless,
    errors: [{ pointer: '/train/epochs', code: 'out_of_range', suggestion: '800' }],
  });
});

t.test('a document with epochs is patched before and after the samples are counted', async (t) => {
  const { spec } = resolve({ epochs: 1 }, {}, UNCOUNTED);
  const patch = { train: { overrides: [{ step: 8, lr: 0.1 }] } };
  const at = { requested_ranks: 1, steps_done: 0 };
  const waiting = patchSpec(spec, patch, at);
  t.same(waiting.errors, []);
  t.match(resolveSteps(waiting.spec, { samples: 62, continues: null }).errors, [
    { code: 'override_after_training' },
  ]);
  const { spec: counted } = resolveSteps(spec, { samples: 62, continues: null });
  t.match(patchSpec(counted, patch, at).errors, [{ code: 'override_after_training' }]);
});

t.test('exactly one of steps and epochs', async (t) => {
  t.same(resolve({ steps: 5, epochs: 1 }).errors, [['/train/epochs', 'exactly_one_of', undefined]]);
});

t.test('epochs with too many steps are refused with the maximum', async (t) => {
  const dataset = { ...DATASET, num_tokens: 16 * 1_000_000 + 1 };
  t.same(resolve({ epochs: 1000 }, {}, dataset).errors, [['/train/epochs', 'out_of_range', '800']]);
  t.same(resolve({ epochs: 800 }, {}, dataset).errors, []);
});
