import { holds, ignored, type Keys, mapped, named, off, only, refused, section } from './key.js';
import { BF16, DATA_TYPES, FP16 } from './precision-keys.js';
import { AIO, ZERO_OPTIMIZATION } from './zero-keys.js';

const METRICS =
  'metrics are kept by the service: read GET /v1/jobs/{job_id}/metrics or /stream, and remove it';
const MONITOR_KEYS = ['output_path', 'job_name', 'group', 'team', 'project'];
const COMPRESSION = 'weights and activations are not compressed while training: remove it';
const NO_PARALLELISM = 'data parallelism is the only one here: remove it';

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
  seq_parallel_communication_data_type: only(['fp32'], NO_PARALLELISM),
  seq_parallel_comm_data_type: only(['fp32'], NO_PARALLELISM),
  prescale_gradients: mapped('boolean', 'zero.gradient_predivide_factor = resources.ranks.preferred'),
  gradient_predivide_factor: mapped('number', 'zero.gradient_predivide_factor'),
  gradient_allreduce_op: only(['mean'], 'gradients are averaged: multiply the learning rate instead'),
  sparse_gradients: only([false], 'all gradients are dense'),
  disable_allgather: only([false], 'updated parameters are always gathered'),
};

const MONITORING: Keys = {
  steps_per_print: ignored('integer', 'every step is reported as a metric'),
  dump_state: ignored('boolean', 'the resolved document is part of every reply'),
  log_level: ignored('string', 'it does not change the training'),
  timers: ignored('any', 'it does not change the training'),
  vocabulary_size: ignored('integer', 'DeepSpeed only warns by it; the model says how many tokens there are'),
  wall_clock_breakdown: only([false], METRICS),
  memory_breakdown: only([false], 'POST /v1/estimate says what a job needs, part by part: remove it'),
  flops_profiler: off(METRICS, [
    'recompute_fwd_factor',
    'profile_step',
    'module_depth',
    'top_modules',
    'detailed',
    'output_file',
  ]),
  tensorboard: off(METRICS, MONITOR_KEYS),
  wandb: off(METRICS, MONITOR_KEYS),
  csv_monitor: off(METRICS, MONITOR_KEYS),
  comet: off(METRICS, [
    'workspace',
    'project',
    'samples_log_interval',
    'experiment_name',
    'api_key',
    'experiment_key',
    'online',
    'mode',
  ]),
  ...named(
    ['comms_config', 'monitor_config'],
    ignored('any', 'DeepSpeed makes it of other keys and prints it; given, it has no effect'),
  ),
  comms_logger: off(METRICS, ['verbose', 'prof_all', 'debug', 'prof_ops']),
  autotuning: off('there is no tuner: POST /v1/estimate says what fits; remove it'),
};

const CHECKPOINTS: Keys = {
  activation_checkpointing: section({
    partition_activations: only([false], 'activations are kept whole: remove it'),
    cpu_checkpointing: only([false], 'activations are not offloaded: remove it'),
    contiguous_memory_optimization: holds('boolean', 'activations lie in buffers that are made once'),
    number_checkpoints: ignored('any', 'the model decides what is kept'),
    synchronize_checkpoint_boundary: ignored('boolean', 'it does not change the training'),
    profile: only([false], METRICS),
  }),
  checkpoint: section({
    tag_validation: holds('string', 'a checkpoint counts only when all of its ranks have written it'),
    load_universal: holds('boolean', 'every checkpoint can be resumed on any number of ranks'),
    use_node_local_storage: only([false], 'checkpoints lie in the object store: remove it'),
    parallel_write: section({ pipeline_stage: holds('boolean', 'every rank writes what it owns') }),
    writer: refused('checkpoints are written by the service: remove it'),
  }),
  nebula: off('checkpoints lie in the object store: remove it'),
  datastates_ckpt: refused('checkpoints are written by the service: remove it'),
};

/** Techniques that are not here. */
const REFUSED: Keys = {
  amp: off('mixed precision is fp16 or bf16 with fp32 master weights: write fp16 or bf16'),
  torch_autocast: off('whole models are trained in one precision: write fp16 or bf16', [
    'dtype',
    'lower_precision_safe_modules',
  ]),
  elasticity: off('every job is elastic: write resources.ranks, and the batch sizes'),
  tensor_parallel: section({
    autotp_size: only([0, 1], NO_PARALLELISM),
    ...named(
      ['preset_model', 'tp_overlap_comm', 'vocab_parallel_lm_head', 'partition_config', 'tp_size', 'tp'],
      refused(NO_PARALLELISM),
    ),
  }),
  expert_parallel: off('zero.expert_parallel_size spreads the experts of a model that has some: remove it'),
  use_data_before_expert_parallelism: only([false], 'the ranks of an expert set are r, r + P, r + 2P, …'),
  sequence_parallel_size: only([1], NO_PARALLELISM),
  pipeline: refused(NO_PARALLELISM),
  hybrid_engine: off('a job only trains: remove it'),
  compile: section({
    deepcompile: only([false], 'there is no compiler: remove it'),
    enabled: only([false], 'there is no compiler: remove it'),
    ...named(
      ['backend', 'passes', 'schedule', 'offload_activation', 'offload_activation_pin_memory', 'kwargs'],
      refused('there is no compiler: remove it'),
    ),
  }),
  graph_harvesting: only([false], 'there are no captured graphs: remove it'),
  sparse_attention: refused('attention is dense: remove it'),
  progressive_layer_drop: off('layers are never dropped: remove it'),
  curriculum_learning: off('samples come in an order that depends on the seed alone: remove it'),
  data_efficiency: off('samples come in an order that depends on the seed alone: remove it'),
  compression_training: refused(COMPRESSION),
  quantize_training: refused(COMPRESSION),
  weight_quantization: refused(COMPRESSION),
  eigenvalue: off(COMPRESSION),
  aio: AIO,
};

/** Every key of the top level. `optimizer` and `scheduler` have tables for each of their types. */
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
