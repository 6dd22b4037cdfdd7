import type { JobSpec } from '../../contracts/index.js';

/**
 * A job of half a second with all relevant features: grouped-query attention, several buckets, an odd number of leaves
 * per rank.
 */
interface SmallJobOptions {
  name: string;
  dataset: string;
  steps: number;
  ranks: number;
  every_steps?: number;
  keep?: NonNullable<JobSpec['checkpoint']>['keep'];
}

/** A small Llama: every parameter ends inside a block, and buckets are of the smallest size. */
export function smallJob({
  name,
  dataset,
  steps,
  ranks,
  every_steps = 100,
  keep = {},
}: SmallJobOptions): JobSpec {
  return {
    name,
    model: {
      config: {
        model_type: 'llama',
        hidden_size: 96,
        intermediate_size: 200,
        num_hidden_layers: 2,
        num_attention_heads: 6,
        num_key_value_heads: 2,
        vocab_size: 256,
      },
    },
    data: { dataset, seed: 7 },
    train: {
      steps,
      sequence_length: 64,
      global_batch_size: 10,
      micro_batch_size: 2,
      seed: 11,
      optimizer: { lr: 2e-3 },
      lr_schedule: { type: 'cosine', warmup_steps: 3, min_lr: 1e-4 },
    },
    zero: { bucket_bytes: 16384 * 4 },
    resources: { ranks: { min: 1, max: 4, preferred: ranks } },
    checkpoint: { every_steps, keep },
  };
}

/** The same with steps of some tens of milliseconds, so that requests and faults hit a running job. */
export function largerSteps(spec: JobSpec, globalBatchSize = 40): JobSpec {
  return { ...spec, train: { ...spec.train, global_batch_size: globalBatchSize, sequence_length: 128 } };
}
