import t from 'tap';
import type { JobSpec } from '../../../contracts/index.js';
import { resolveSpec } from '../../resolve-spec.js';
import { DATASET, LLAMA, SMALLEST } from '../../testing/documents.js';

t.test('a checkpoint as initial state', async (t) => {
  const source = (train: JobSpec['train'] = { steps: 1 }, model: JobSpec['model'] = SMALLEST.model) => ({
    checkpoint: {
      id: `ckpt_${'0'.repeat(26)}`,
      job_id: `job_${'0'.repeat(26)}`,
      step: 7,
      world_size: 2,
      state_digest: '0'.repeat(32),
      bytes: 1,
      committed_at: '2026-01-01T00:00:00.000Z',
      pinned: false,
      damaged: false,
      prefix: 'jobs/job_0/checkpoints/000000007-1-a-a',
    },
    spec: resolveSpec({ ...SMALLEST, train, model }, null).spec,
  });
  const begin = (initFrom: { checkpoint: string; restore?: 'full' }, from: ReturnType<typeof source>) =>
    resolveSpec({ ...SMALLEST, model: { preset: 'llama-tiny', init_from: initFrom } }, DATASET, {
      source: from,
    });
  const { checkpoint } = source();
  const good = begin({ checkpoint: checkpoint.id }, source({ steps: 1, optimizer: { type: 'lion' } }));
  t.same(good.errors, []);
  t.same(good.spec.model.init_from, {
    checkpoint: checkpoint.id,
    job: checkpoint.job_id,
    prefix: checkpoint.prefix,
    restore: 'weights',
  });
  t.match(
    begin({ checkpoint: checkpoint.id, restore: 'full' }, source({ steps: 1, optimizer: { type: 'lion' } }))
      .errors,
    [{ pointer: '/model/init_from/restore', code: 'checkpoint_optimizer_mismatch', suggestion: 'weights' }],
  );
  t.match(begin({ checkpoint: checkpoint.id, restore: 'full' }, source({ steps: 1, ema: {} })).errors, [
    {
      code: 'checkpoint_optimizer_mismatch',
      message: /has optimizer state of adamw \(exp_avg, exp_avg_sq, ema\)/,
    },
  ]);
  t.same(begin({ checkpoint: checkpoint.id }, source({ steps: 1, ema: {} })).errors, []);
  t.same(begin({ checkpoint: checkpoint.id, restore: 'full' }, source()).errors, []);
  const frozen = { param_groups: [{ match: 'lm_head.*', frozen: true }] };
  t.match(
    begin({ checkpoint: checkpoint.id, restore: 'full' }, source({ steps: 1, optimizer: frozen })).errors,
    [{ pointer: '/model/init_from/restore', code: 'checkpoint_frozen_mismatch', message: /lm_head.weight/ }],
  );
  t.same(begin({ checkpoint: checkpoint.id }, source({ steps: 1, optimizer: frozen })).errors, []);
  const preferring = (type: 'dpo' | 'ipo', from: JobSpec['train']) => {
    const spec = {
      ...SMALLEST,
      model: {
        preset: 'llama-tiny' as const,
        init_from: { checkpoint: checkpoint.id, restore: 'full' as const },
      },
      train: { steps: 1, objective: { type, reference: 'initial' as const } },
    };
    return resolveSpec(spec, null, { source: source(from) }).errors;
  };
  const dpo = { steps: 1, objective: { type: 'dpo' as const } };
  t.same(preferring('dpo', dpo), []);
  for (const [type, from] of [
    ['ipo', dpo],
    ['dpo', { steps: 1 }],
  ] as const)
    t.match(preferring(type, from), [{ pointer: '/train/objective', code: 'reference_not_kept' }]);
  const adapted = source({ steps: 1, adapter: {} });
  const quantized = (restore: 'full' | 'weights') =>
    resolveSpec(
      {
        ...SMALLEST,
        model: {
          preset: 'llama-tiny',
          quantization: 'nf4',
          init_from: { checkpoint: checkpoint.id, restore },
        },
        train: { steps: 1, adapter: {} },
      },
      DATASET,
      { source: adapted },
    ).errors;
  t.match(quantized('full'), [
    {
      pointer: '/model/init_from/restore',
      code: 'checkpoint_quantization_mismatch',
      message: /training precision.*nf4/,
      suggestion: 'weights',
    },
  ]);
  t.same(quantized('weights'), []);
  t.match(begin({ checkpoint: checkpoint.id }, source(undefined, { config: LLAMA })).errors, [
    {
      pointer: '/model/init_from/checkpoint',
      code: 'checkpoint_model_mismatch',
      message: /hidden_size 64 \(here 256\)/,
    },
  ]);
});
