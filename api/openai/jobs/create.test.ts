import type { JobCreateParams } from 'openai/resources/fine-tuning/jobs/jobs';
import t from 'tap';
import { resolveSpec } from '../../../job-document/index.js';
import { EXACT } from '../../../job-document/testing/documents.js';
import type { BaseModel } from '../models.js';
import { type CreateBody, parseCreate, specOf } from './create.js';

const BASE: BaseModel = {
  model: { init_from: { model: 'mdl_01J00000000000000000000000' } },
  sequence_length: 512,
  hasAdapter: false,
};
const FILE = 'ds_01J00000000000000000000000';

/** Compiles as long as a body has a field for each of the official client's parameters. */
const fields = (params: Required<JobCreateParams>): Record<keyof CreateBody, unknown> => params;
const spec = (params: Partial<JobCreateParams>, base = BASE) =>
  specOf(
    parseCreate(fields({ model: 'mine', training_file: FILE, ...params } as Required<JobCreateParams>)),
    base,
  );

t.test('the defaults are those of a service: three epochs of adapters', async (t) => {
  const found = spec({});
  t.match(found, {
    name: 'fine-tuning',
    model: BASE.model,
    data: { dataset: FILE },
    train: {
      epochs: 3,
      global_batch_size: 'auto',
      sequence_length: 512,
      adapter: {},
      optimizer: { lr: 2e-4 },
    },
  });
  t.same(spec({ hyperparameters: { n_epochs: 'auto', batch_size: 'auto' } }).train, found.train);
  t.same(spec({ method: { type: 'supervised' } }), found);
  const document = { ...found, model: { preset: 'llama-tiny' as const } };
  t.same(resolveSpec({ ...document, train: { ...document.train, sequence_length: 64 } }, null).errors, []);
});

t.test('hyperparameters of either field, suffix, seed, metadata and validation', async (t) => {
  const hyperparameters = { n_epochs: 2, batch_size: 8, learning_rate_multiplier: 0.5 };
  for (const params of [
    { hyperparameters },
    { method: { type: 'supervised' as const, supervised: { hyperparameters } } },
  ])
    t.match(spec(params).train, { epochs: 2, global_batch_size: 8, optimizer: { lr: 1e-4 } });
  const found = spec({ suffix: 'tuned', seed: 7, metadata: { team: 'docs' }, validation_file: FILE });
  t.equal(found.name, 'tuned');
  t.match(found.train, { seed: 7, evaluation: { datasets: [{ name: 'validation_file', dataset: FILE }] } });
  t.match(found.labels, { team: 'docs', 'openai/suffix': 'tuned', 'openai/model': 'mine' });
});

t.test('dpo compares with the base, or with the adapter that it goes on with', async (t) => {
  const dpo = { method: { type: 'dpo' as const, dpo: { hyperparameters: { beta: 0.2 } } } };
  t.same(spec(dpo).train?.objective, { type: 'dpo', beta: 0.2 });
  const adapted = spec(dpo, { ...BASE, hasAdapter: true }).train;
  t.same(adapted?.objective, { type: 'dpo', beta: 0.2, reference: 'initial' });
  t.notOk(adapted && 'adapter' in adapted, 'that of the checkpoint');
});

t.test('reinforcement has a grader, groups and prompts', async (t) => {
  const hyperparameters = {
    batch_size: 4,
    compute_multiplier: 2,
    learning_rate_multiplier: 0.5,
    n_epochs: 2,
  };
  const found = spec({
    method: { type: 'reinforcement', reinforcement: { grader: EXACT, hyperparameters } },
  });
  t.match(found.train, { epochs: 2, adapter: {}, optimizer: { lr: 2.5e-5 } });
  t.notOk(found.train && 'global_batch_size' in found.train);
  t.same(found.train?.objective, { type: 'grpo', grader: EXACT, prompts_per_step: 4, group_size: 16 });
});

t.test('reinforcement is evaluated with the grader on the validation file', async (t) => {
  const hyperparameters = { eval_interval: 5, eval_samples: 1 };
  const { train } = spec({
    method: { type: 'reinforcement', reinforcement: { grader: EXACT, hyperparameters } },
    validation_file: FILE,
  });
  const datasets = [{ name: 'validation_file', dataset: FILE }];
  t.same(train?.evaluation, { every_steps: 5, datasets });
});

t.test('what has no equivalent is refused by name', async (t) => {
  const cases: [Record<string, unknown>, string][] = [
    [{ method: { type: 'reinforcement' } }, 'method.reinforcement'],
    [{ method: { type: 'reinforcement', reinforcement: {} } }, 'method.reinforcement.grader'],
    [
      {
        method: {
          type: 'reinforcement',
          reinforcement: { grader: EXACT, hyperparameters: { eval_interval: 5 } },
        },
      },
      'method.reinforcement.hyperparameters.eval_interval',
    ],
    [
      {
        method: {
          type: 'reinforcement',
          reinforcement: { grader: EXACT, hyperparameters: { eval_samples: 3 } },
        },
      },
      'method.reinforcement.hyperparameters.eval_samples',
    ],
    [{ integrations: [{ type: 'wandb', wandb: { project: 'x' } }] }, 'integrations'],
    [{ metadata: { 'openai/model': 'x' } }, 'metadata'],
    [{ training_file: undefined }, 'training_file'],
    [{ seed: 'one' }, 'seed'],
    [{ n_epochs: 3 }, 'n_epochs'],
    [{ hyperparameters: { n_epochs: 0 } }, 'hyperparameters.n_epochs'],
  ];
  for (const [changes, param] of cases) {
    const body = { model: 'mine', training_file: FILE, ...changes };
    const refusal = t.throws(() => specOf(parseCreate(body), BASE), JSON.stringify(changes));
    t.match(refusal, { status: 400, param });
  }
});
