import t from 'tap';
import type { Dataset, Grader, JobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';
import { DATASET, EXACT, SMALLEST } from '../testing/documents.js';

type Train = NonNullable<JobSpec['train']>;
type Objective = NonNullable<Train['objective']>;

const PROMPTS: Dataset = {
  ...DATASET,
  format: 'jsonl',
  num_documents: 100,
  num_prompts: 100,
  num_tokens: null,
};

function resolve(
  objective: Partial<Objective> = {},
  { train = {}, dataset = PROMPTS, ...document }: Partial<JobSpec> & { dataset?: Dataset } = {},
) {
  const aim = { type: 'grpo', grader: EXACT, ...objective } as Objective;
  return resolveSpec(
    {
      ...SMALLEST,
      ...document,
      data: { ...SMALLEST.data, ...document.data },
      train: { steps: 10, objective: aim, ...train },
    },
    dataset,
  );
}

const refused = (...given: Parameters<typeof resolve>) =>
  resolve(...given).errors.map(({ pointer, code }) => `${pointer} ${code}`);

t.test('defaults, and the resolved document makes the same job', async (t) => {
  const { spec, errors } = resolve();
  t.same(errors, []);
  t.same(spec.train.objective, {
    type: 'grpo',
    grader: EXACT,
    prompts_per_step: 16,
    group_size: 8,
    max_tokens: 64,
    temperature: 1,
    top_p: 1,
    top_k: 0,
    num_iterations: 1,
    loss: { type: 'ppo', clip_low: 0.2, clip_high: 0.2, beta: 0 },
    loss_type: 'dapo',
    scale_rewards: 'group',
    max_failed_share: 0.1,
    evaluation_prompts: 256,
  });
  const { data, train } = spec;
  const again = resolveSpec({ ...SMALLEST, data, train } as JobSpec, PROMPTS);
  t.same(again.errors, []);
  t.same(again.spec, spec);
});

t.test('epochs count prompts, and each step of a rollout', async (t) => {
  const steps = (objective: Partial<Objective>, epochs: number) => {
    const aim = { type: 'grpo', grader: EXACT, ...objective } as Objective;
    return resolveSpec({ ...SMALLEST, train: { epochs, objective: aim } }, PROMPTS).spec.train.steps;
  };
  t.equal(steps({ prompts_per_step: 10 }, 2), 20);
  t.equal(steps({ prompts_per_step: 30, num_iterations: 3 }, 1), 12);
});

t.test('refusals name the field', async (t) => {
  t.same(refused({ grader: undefined as unknown as Grader }), ['/train/objective/grader missing_field']);
  t.same(refused({ beta: 0.1 }), ['/train/objective/beta field_without_effect']);
  t.same(refused({ loss: { type: 'importance_sampling', clip_low: 0.1 } }), [
    '/train/objective/loss/clip_low field_without_effect',
  ]);
  const penalized: Partial<Objective> = { loss: { type: 'cispo', beta: 0.1 } };
  t.same(refused(penalized), ['/train/objective/loss/beta adapter_missing']);
  t.same(refused(penalized, { train: { adapter: { modules_to_save: ['lm_head'] } } }), [
    '/train/objective/loss/beta reference_not_kept',
  ]);
  t.same(refused(penalized, { train: { adapter: {} } }), []);
  t.same(refused({ max_tokens: 128 }), ['/train/objective/max_tokens out_of_range']);
  t.same(refused({ prompts_per_step: 200 }), ['/train/objective/prompts_per_step out_of_range']);
  t.same(
    refused({ prompts_per_step: 64, group_size: 16, max_tokens: 2000 }, { train: { sequence_length: 2048 } }),
    ['/train/objective/max_tokens out_of_range'],
  );
  const long = refused(
    { prompts_per_step: 128, group_size: 2, max_tokens: 16 },
    { train: { sequence_length: 32_000 } },
  );
  t.ok(long.includes('/train/objective/prompts_per_step out_of_range'), 'prompts fit into a call');
  t.same(refused({}, { data: { packing: 'split', validation_fraction: 0.1 } as JobSpec['data'] }), [
    '/data/packing field_without_effect',
    '/data/validation_fraction field_without_effect',
  ]);
  t.same(refused({}, { train: { ema: {} } }), ['/train/ema field_without_effect']);
  t.same(refused({}, { train: { optimizer: { type: 'lion' } } }), [
    '/train/optimizer/type session_unsupported',
  ]);
  t.same(refused({}, { zero: { stage: 1 } }), ['/zero/stage session_unsupported']);
});

t.test('evaluations have rewards as metrics, and prompts that fit into a call', async (t) => {
  const HELD = { ...PROMPTS, id: 'ds_01J000000000000000000000EV' };
  const evaluation = { every_steps: 2, datasets: [{ name: 'held_out', dataset: HELD.id }] };
  const evaluated = (objective: Partial<Objective>, changes: Partial<JobSpec> = {}) => {
    const aim = { type: 'grpo', grader: EXACT, ...objective } as Objective;
    const train = { steps: 10, sequence_length: 2048, objective: aim, evaluation, ...changes.train };
    return resolveSpec({ ...SMALLEST, ...changes, train }, PROMPTS, { evaluation: [HELD] });
  };
  const { spec, errors } = evaluated({}, { checkpoint: { keep: { best: 1 } } });
  t.same(errors, []);
  t.equal(spec.checkpoint.keep.best_metric, 'eval_reward/held_out');
  t.match(evaluated({ evaluation_prompts: 1024, max_tokens: 2000 }).errors, [
    { pointer: '/train/objective/evaluation_prompts', code: 'out_of_range', suggestion: '524' },
  ]);
  t.match(evaluated({}, { train: { early_stopping: { patience: 1 } } }).errors, [
    { pointer: '/train/early_stopping', code: 'field_without_effect' },
  ]);
});

t.test('prompts are read by grpo alone, and it reads nothing else', async (t) => {
  t.same(refused({}, { dataset: DATASET }), ['/data/dataset dataset_without_prompts']);
  t.same(refused({}, { dataset: { ...PROMPTS, bytes: 2 ** 30 } }), ['/data/dataset dataset_too_large']);
  t.same(refused({}, { dataset: { ...PROMPTS, num_prompts: 0, num_chats: 100 } }), []);
  for (const objective of [undefined, { type: 'dpo' as const }]) {
    const { errors } = resolveSpec({ ...SMALLEST, train: { steps: 10, objective } }, PROMPTS);
    t.match(errors[0], { pointer: '/data/dataset', code: 'dataset_has_prompts' });
  }
});
