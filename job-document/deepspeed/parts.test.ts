import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';
import { document, resolved } from '../testing/deepspeed.js';

t.test('any two of the three batch sizes determine the third', async (t) => {
  const sizes = (config: Record<string, unknown>, own?: JobSpec['train']) => {
    const { global_batch_size, micro_batch_size } = resolved(config, { train: { steps: 1, ...own } }).train;
    return [global_batch_size, micro_batch_size];
  };
  const [total, micro, steps] = [
    'train_batch_size',
    'train_micro_batch_size_per_gpu',
    'gradient_accumulation_steps',
  ] as const;
  t.same(sizes({ [total]: 48, [micro]: 6 }), [48, 6]);
  t.same(sizes({ [total]: 48, [steps]: 4 }), [48, 6]);
  t.same(sizes({ [micro]: 6, [steps]: 4 }), [48, 6]);
  t.same(sizes({ [total]: 48, [micro]: 6, [steps]: 4 }), [48, 6]);
  t.same(sizes({ [total]: 48 }), [48, 24]);
  t.same(sizes({ [micro]: 6 }), [12, 6]);
  t.same(sizes({ [micro]: 'auto', [steps]: 4, [total]: 'auto' }, { micro_batch_size: 3 }), [24, 3]);
  t.same(sizes({ [steps]: 4 }), [32, 4]);
  t.same(sizes({ [micro]: 6, [total]: null }), [12, 6]);
  for (const config of [
    { [total]: 49, [micro]: 6 },
    { [total]: 48, [micro]: 6, [steps]: 3 },
    { [total]: 10, [steps]: 4 },
    { [total]: 5 },
  ]) {
    const { errors } = resolveSpec(document(config, { train: { steps: 1 } }), null);
    t.match(errors, [{ pointer: '/deepspeed_config/train_batch_size', code: 'deepspeed_batch_mismatch' }]);
  }
});

t.test('state that is restored from a checkpoint', async (t) => {
  const restore = (loadFromFp32Weights: boolean, own?: 'full' | 'weights_16bit' | 'a text') => {
    const checkpoint = `ckpt_${'0'.repeat(26)}`;
    const initFrom =
      own === 'a text' ? checkpoint : { checkpoint, ...(own !== undefined && { restore: own }) };
    const spec = document(
      { zero_optimization: { load_from_fp32_weights: loadFromFp32Weights } },
      { train: { steps: 1, precision: 'bf16' }, model: { preset: 'llama-tiny', init_from: initFrom } },
    );
    const source = {
      checkpoint: {
        id: checkpoint,
        job_id: `job_${'0'.repeat(26)}`,
        step: 1,
        world_size: 1,
        state_digest: '0'.repeat(32),
        bytes: 1,
        committed_at: '2026-01-01T00:00:00.000Z',
        pinned: false,
        damaged: false,
        prefix: 'p',
      },
      spec: resolveSpec({ ...spec, model: { preset: 'llama-tiny' } }, null).spec,
    };
    const { spec: result, errors } = resolveSpec(spec, null, { source });
    const from = result.model.init_from;
    return errors[0]?.code ?? (from && 'restore' in from && from.restore);
  };
  t.equal(restore(true), 'weights');
  t.equal(restore(true, 'full'), 'full', "DeepSpeed's default");
  t.equal(restore(true, 'weights_16bit'), 'deepspeed_conflict');
  t.equal(restore(false), 'weights_16bit');
  t.equal(restore(false, 'a text'), 'weights_16bit');
  t.equal(restore(false, 'full'), 'deepspeed_conflict');
  t.same(
    resolved({ zero_optimization: { load_from_fp32_weights: false } }, { train: { steps: 1 } }).model
      .init_from,
    null,
  );
});
