/** A job from a DeepSpeed configuration trains like the equivalent native document. */
import t from 'tap';
import type { JobSpec } from '../../contracts/index.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack } from '../support/stack.js';

t.test('LAMB in fp16 with a dynamic scale and ZeRO-1: equal digests', async (t) => {
  const { client } = await startStack(t, { env: { ZEROFLEET_THREADS_PER_RANK: '1' } });
  const { id: dataset } = await client.datasets.create('openapi', sampleText());
  const { train, zero: _, ...rest } = smallJob({ name: 'deepspeed', dataset, steps: 8, ranks: 2 });
  const resources = { ranks: { min: 1, max: 2, preferred: 2 } };
  const common = { sequence_length: train?.sequence_length ?? 64, seed: 11 };
  const imported: JobSpec = {
    ...rest,
    resources,
    train: common,
    zero: { lanes: 3 },
    deepspeed_config: {
      train_batch_size: 12,
      gradient_accumulation_steps: 3,
      optimizer: { type: 'Lamb', params: { lr: 4e-3, betas: [0.9, 0.98], weight_decay: 0.02, max_coeff: 5 } },
      scheduler: {
        type: 'WarmupDecayLR',
        params: { warmup_max_lr: 4e-3, warmup_num_steps: 3, total_num_steps: 8 },
      },
      fp16: { enabled: true, loss_scale: 0, initial_scale_power: 10, loss_scale_window: 3 },
      gradient_clipping: 0.5,
      zero_optimization: { stage: 1, reduce_bucket_size: 30_000, overlap_comm: true },
    },
  };
  const native: JobSpec = {
    ...rest,
    resources,
    train: {
      ...common,
      steps: 8,
      global_batch_size: 12,
      micro_batch_size: 2,
      precision: 'fp16',
      optimizer: {
        type: 'lamb',
        lr: 4e-3,
        betas: [0.9, 0.98],
        eps: 1e-8,
        weight_decay: 0.02,
        max_coeff: 5,
        bias_correction: 'step_size',
      },
      lr_schedule: { type: 'linear', warmup_steps: 3, warmup_type: 'log' },
      loss_scale: { type: 'dynamic', initial_scale: 1024, window: 3 },
      gradient_clipping: 0.5,
    },
    // Another bucket size, which does not affect the result.
    zero: {
      stage: 1,
      lanes: 3,
      bucket_bytes: 65_536,
      grad_accum_dtype: 'fp16',
      gradient_predivide_factor: 2,
    },
  };
  const digests = await Promise.all(
    [imported, native].map(async (spec) => {
      const { id } = await client.jobs.create(spec);
      const job = await client.jobs.until(id, () => false, { interval_ms: 50 });
      t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
      return job.export?.state_digest;
    }),
  );
  t.match(digests[0], /^[0-9a-f]{32}$/);
  t.equal(digests[0], digests[1]);
});
