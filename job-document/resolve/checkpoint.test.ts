import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';
import { DATASET, SMALLEST } from '../testing/documents.js';

const DATA = { ...SMALLEST.data, validation_fraction: 0.1 };

/** Resolves a document that is evaluated every 100 steps, unless it has no validation data. */
function resolve(checkpoint: JobSpec['checkpoint'], more: Partial<JobSpec> = {}) {
  const { spec, errors } = resolveSpec({ ...SMALLEST, data: DATA, ...more, checkpoint }, DATASET);
  const found = errors.map(({ pointer, code, message }) => ({ pointer, code, message }));
  return { checkpoint: spec.checkpoint, errors: found };
}

t.test('the defaults of what is kept', async (t) => {
  t.same(resolve({ keep: { best: 2 } }).checkpoint.keep, { last: 3, best: 2, best_metric: 'eval_loss' });
  t.same(resolve({ keep: { last: 5 } }).checkpoint.keep, { last: 5, best: 0 });
  t.same(resolve({ keep: { last: 5 } }, { data: SMALLEST.data }).errors, []);
});

t.test('the best checkpoints need evaluations', async (t) => {
  t.match(resolve({ keep: { best: 1 } }, { data: SMALLEST.data }).errors, [
    {
      pointer: '/checkpoint/keep/best',
      code: 'evaluation_missing',
      message: /set data.validation_fraction/,
    },
  ]);
});

t.test('the best checkpoints need evaluations at the steps of checkpoints', async (t) => {
  const refused = [
    {
      pointer: '/checkpoint/keep/best',
      code: 'checkpoints_not_evaluated',
      message: /train.evaluation.every_steps \(100 here\).*e\.g\. every_steps 100/,
    },
  ];
  for (const everySteps of [20, 100, 300])
    t.same(resolve({ every_steps: everySteps, keep: { best: 1 } }).errors, [], `every ${everySteps} steps`);
  for (const when of [{ every_steps: 30 }, { every_seconds: 60 }, { auto: true as const }])
    t.match(resolve({ ...when, keep: { best: 1 } }).errors, refused, JSON.stringify(when));
});

t.test('prompts have defaults, and chats need a template', async (t) => {
  const samples = { prompts: [{ prompt: 'Once' }, { messages: [{ role: 'user', content: 'Why?' }] }] };
  const { checkpoint, errors } = resolve({ samples });
  t.same(checkpoint.samples, { ...samples, max_tokens: 64, temperature: 0, top_k: 0, top_p: 1, seed: 1 });
  t.match(errors, [
    {
      pointer: '/checkpoint/samples/prompts/1/messages',
      code: 'chat_template_missing',
      message: /write a prompt/,
    },
  ]);
  t.same(resolve({ samples: { prompts: [{ prompt: 'Once' }] } }).errors, []);
});
