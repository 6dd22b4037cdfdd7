import { holds, ignored, type Keys, mapped, named, off, only, refused, section } from './key.js';
import { BF16, DATA_TYPES, FP16 } from './precision-keys.js';
import { AIO, ZERO_OPTIMIZATION } from './zero-keys.js';

const METRICS = 'the service stores metrics: read GET /v1/jobs/{job_id}/metrics or /stream';
const STORE = 'the service writes checkpoints to the object store';
const COMPRESSION = 'training does not compress weights and activations: remove it';
const NO_PARALLELISM = 'tensor, pipeline and sequence parallelism are not supported: remove it';

const BATCH: Keys = {
  train_batch_size: mapped('integer', 'train.global_batch_size'),
  train_micro_batch_size_per_gpu: mapped('integer', 'train.micro_batch_size'),
  gradient_accumulation_steps: mapped(
    'integer',
    'train.global_batch_size = train_micro_batch_size_per_gpu × gradient_accumulation_steps × resources.ranks.preferred',
  ),
  managed_gradient_accumulation: only([true], "the training loop is the service's own"),
  dataloader_drop_last: holds('boolean', 'every batch is full'),
};

const GRADIENTS: Keys = {
  gradient_clipping: mapped('number', 'train.gradient_clipping; 0 when absent'),
  communication_data_type: mapped('string', 'zero.reduce_dtype'),
  ...named(
    ['seq_parallel_communication_data_type', 'seq_parallel_comm_data_type'],
    ignored('string', 'only sequence parallelism uses it, and the key that enables it is refused'),
  ),
  prescale_gradients: mapped('boolean', 'zero.gradient_predivide_factor = resources.ranks.preferred'),
  gradient_predivide_factor: mapped(
    'number',
    'zero.gradient_predivide_factor; resources.ranks.preferred by default with fp16',
  ),
  gradient_allreduce_op: only(['mean'], 'gradients are averaged: multiply the learning rate instead'),
  sparse_gradients: ignored('boolean', 'gradients are exchanged dense, with the same sums'),
  disable_allgather: ignored('boolean', 'it has no effect in DeepSpeed either'),
};

const MONITORING: Keys = {
  steps_per_print: ignored('integer', 'every step reports its metrics'),
  dump_state: ignored('boolean', 'every response contains the resolved document'),
  log_level: ignored('string', 'it does not change the training'),
  timers: ignored('any', 'it does not change the training'),
  vocabulary_size: ignored(
    'integer',
    'DeepSpeed only uses it for a warning; the model defines the vocabulary size',
  ),
  ...named(
    ['flops_profiler', 'tensorboard', 'wandb', 'csv_monitor', 'comet', 'comms_logger'],
    ignored('any', METRICS),
  ),
  wall_clock_breakdown: ignored('boolean', METRICS),
  memory_breakdown: ignored('boolean', 'POST /v1/estimate returns the memory of a job by part'),
  ...named(
    ['comms_config', 'monitor_config'],
    ignored('any', 'DeepSpeed computes it from other keys and prints it; it has no effect as input'),
  ),
  autotuning: off('autotuning is not supported: remove it, and use POST /v1/estimate'),
};

const CHECKPOINTS: Keys = {
  activation_checkpointing: section({
    partition_activations: ignored(
      'boolean',
      'it shards activations over model parallel ranks, which are not supported',
    ),
    cpu_checkpointing: only(
      [false],
      'activations stay on their device: remove it; POST /v1/estimate returns the memory of the job',
    ),
    contiguous_memory_optimization: holds('boolean', 'activations are in buffers that are allocated once'),
    number_checkpoints: ignored('any', 'the model determines the checkpointed activations'),
    synchronize_checkpoint_boundary: ignored('boolean', 'it does not change the training'),
    profile: ignored('boolean', METRICS),
  }),
  checkpoint: section({
    tag_validation: holds('string', 'a checkpoint is committed only after all of its ranks have written it'),
    load_universal: holds('boolean', 'every checkpoint can be resumed on any number of ranks'),
    use_node_local_storage: ignored('boolean', STORE),
    parallel_write: section({ pipeline_stage: holds('boolean', 'every rank writes its own shard') }),
    writer: ignored('any', STORE),
  }),
  ...named(['nebula', 'datastates_ckpt'], ignored('any', STORE)),
};

/** Techniques that are not implemented. */
const REFUSED: Keys = {
  amp: off('mixed precision is fp16 or bf16 with fp32 master weights: use fp16 or bf16'),
  torch_autocast: off('a model is trained in one precision: use fp16 or bf16', [
    'dtype',
    'lower_precision_safe_modules',
  ]),
  elasticity: off('every job is elastic: set resources.ranks and the batch sizes'),
  tensor_parallel: section({
    autotp_size: only([0, 1], NO_PARALLELISM),
    ...named(
      ['preset_model', 'tp_overlap_comm', 'vocab_parallel_lm_head', 'partition_config', 'tp_size', 'tp'],
      refused(NO_PARALLELISM),
    ),
  }),
  expert_parallel: off('zero.expert_parallel_size spreads the experts of a model: remove it'),
  use_data_before_expert_parallelism: ignored(
    'boolean',
    'it only affects the placement of ranks, which changes no result',
  ),
  sequence_parallel_size: only([1], NO_PARALLELISM),
  pipeline: refused(NO_PARALLELISM),
  hybrid_engine: ignored('any', 'it enables text generation during training, and a job only trains'),
  compile: ignored('any', 'kernels are compiled in advance, and compute the same result'),
  graph_harvesting: ignored('boolean', 'graphs are not captured; the result is the same'),
  sparse_attention: refused('attention is dense: remove it'),
  progressive_layer_drop: off('layers are never dropped: remove it'),
  curriculum_learning: off('the order of samples depends on the seed alone: remove it'),
  data_efficiency: off('the order of samples depends on the seed alone: remove it'),
  compression_training: refused(COMPRESSION),
  quantize_training: refused(COMPRESSION),
  weight_quantization: refused(COMPRESSION),
  eigenvalue: off(COMPRESSION),
  aio: AIO,
};

/** All keys of the top level. `optimizer` and `scheduler` have tables for each of their types. */
export const CONFIG_KEYS: Keys = {
  ...BATCH,
  optimizer: section({
    type: mapped('string', 'train.optimizer.type'),
    params: holds('any', 'by type, see below'),
    legacy_fusion: holds('boolean', 'the update is always one pass'),
  }),
  scheduler: section({
    type: mapped('string', 'train.lr_schedule.type'),
    params: holds('any', 'by type, see below'),
  }),
  zero_allow_untested_optimizer: holds('boolean', 'every optimizer is tested with every stage'),
  zero_force_ds_cpu_optimizer: holds('boolean', 'there is one implementation of each optimizer'),
  ...GRADIENTS,
  fp16: FP16,
  bf16: BF16,
  bfloat16: BF16,
  data_types: DATA_TYPES,
  zero_optimization: ZERO_OPTIMIZATION,
  allgather_size: ignored('number', 'parameters are gathered in the buckets of the gradients'),
  ...CHECKPOINTS,
  ...MONITORING,
  disable_python_gc: ignored('boolean', 'there is no Python'),
  ...REFUSED,
};
