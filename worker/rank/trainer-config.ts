import type { StartMessage } from '../../contracts/rank-protocol.js';
import type { ModelConfig, TrainerConfig } from '../native/adapter.js';

/** The part of the job's model configuration that the native core computes with. */
export function modelConfig(config: StartMessage['spec']['model']['config']): ModelConfig {
  return {
    hidden_size: config.hidden_size,
    intermediate_size: config.intermediate_size,
    num_hidden_layers: config.num_hidden_layers,
    num_attention_heads: config.num_attention_heads,
    num_key_value_heads: config.num_key_value_heads,
    head_dim: config.head_dim,
    vocab_size: config.vocab_size,
    max_position_embeddings: config.max_position_embeddings,
    rms_norm_eps: config.rms_norm_eps,
    rope_theta: config.rope_theta,
    tie_word_embeddings: config.tie_word_embeddings,
    initializer_range: config.initializer_range,
  };
}

/** The native core's configuration of one rank. */
export function trainerConfig(start: StartMessage): TrainerConfig {
  const { train, zero, data, model } = start.spec;
  const { lr, betas: [beta1, beta2] = [0.9, 0.95], eps = 1e-8, weight_decay } = train.optimizer;
  const { type, warmup_steps, min_lr } = train.lr_schedule;
  return {
    model: modelConfig(model.config),
    rank: start.rank,
    world_size: start.world_size,
    threads: start.threads,
    precision: train.precision as TrainerConfig['precision'],
    reduce_dtype: zero.reduce_dtype as TrainerConfig['reduce_dtype'],
    bucket_bytes: zero.bucket_bytes,
    sequence_length: train.sequence_length,
    global_batch_size: train.global_batch_size,
    micro_batch_size: train.micro_batch_size,
    steps: train.steps,
    seed: train.seed,
    data_seed: data.seed,
    optimizer: { lr, beta1, beta2, eps, weight_decay },
    lr_schedule: { type: type as TrainerConfig['lr_schedule']['type'], warmup_steps, min_lr },
    gradient_clipping: train.gradient_clipping,
    token_file: start.token_file,
    comm: { backend: start.world_size === 1 ? 'solo' : 'gloo', ...start.comm },
  };
}
