import { holds, ignored, type Key, type Keys, mapped, named, only, refused, section } from './key.js';

const STAGE_3 = 'only ZeRO stage 3 uses it, and stage 3 is refused';
const NVME = 'it configures NVMe offload, which is refused';

/** Keys that only ZeRO stage 3 and its variants read. */
const STAGE_3_KEYS: Keys = named(
  [
    'stage3_max_live_parameters',
    'stage3_max_reuse_distance',
    'stage3_prefetch_bucket_size',
    'stage3_param_persistence_threshold',
    'stage3_model_persistence_threshold',
    'stage3_gather_16bit_weights_on_model_save',
    'stage3_gather_fp16_weights_on_model_save',
    'stage3_module_granularity_threshold',
    'stage3_use_all_reduce_for_fetch_params',
    'stage3_allgather_sequential',
    'stage3_partition_stream_chunk_size',
    'max_live_parameters',
    'max_reuse_distance',
    'prefetch_bucket_size',
    'param_persistence_threshold',
    'model_persistence_threshold',
    'gather_16bit_weights_on_model_save',
    'module_granularity_threshold',
    'sub_group_size',
    'offload_param',
    'cpu_offload_params',
    'cpu_offload_param',
    'memory_efficient_linear',
    'override_module_apply',
    'pipeline_loading_checkpoint',
    'leaf_module',
    'save_muon_momentum_buffer_in_memory',
    'zero_hpz_partition_size',
    'mics_shard_size',
    'mics_hierarchical_params_gather',
    'zero_quantized_weights',
    'zero_quantized_nontrainable_weights',
    'zero_quantized_gradients',
    'zeropp_loco_param',
  ],
  ignored('any', STAGE_3),
);

const OFFLOAD_OPTIMIZER: Key = section({
  device: mapped('string', 'zero.offload: cpu, or none'),
  pin_memory: holds('boolean', 'host memory for transfers to a GPU is always pinned'),
  nvme_path: ignored('string', NVME),
  buffer_count: ignored('integer', NVME),
  fast_init: ignored('boolean', NVME),
  pipeline: ignored('boolean', NVME),
  pipeline_read: ignored('boolean', NVME),
  pipeline_write: ignored('boolean', NVME),
  convert_grad_on_cpu: ignored('boolean', 'it does not change the result'),
  cpuadam_cores_perc: ignored('number', 'the update uses the threads of its rank'),
  ratio: only([1], 'the optimizer is offloaded completely or not at all'),
  super_offload: ignored('boolean', STAGE_3),
});

export const ZERO_OPTIMIZATION: Key = section({
  stage: mapped('integer', 'zero.stage; 0 (the default) becomes 1, 3 is refused'),
  reduce_bucket_size: mapped(
    'number',
    'zero.bucket_bytes = elements × bytes of the reduce dtype, at most 1 GiB',
  ),
  offload_optimizer: OFFLOAD_OPTIMIZER,
  cpu_offload: mapped('boolean', 'zero.offload: cpu'),
  cpu_offload_use_pin_memory: holds('boolean', 'host memory for transfers to a GPU is always pinned'),
  ignore_unused_parameters: holds('boolean', 'every parameter of the supported models has a gradient'),
  load_from_fp32_weights: mapped(
    'boolean',
    'model.init_from.restore: weights_16bit for false; every other value loads fp32 weights',
  ),
  overlap_comm: holds('boolean', 'the exchange of gradients always overlaps the backward pass'),
  contiguous_gradients: holds('boolean', 'gradients are always copied to contiguous buckets'),
  reduce_scatter: holds('boolean', 'gradients are always sent to their owner only'),
  allgather_partitions: holds('boolean', 'updated parameters are always gathered in buckets'),
  allgather_bucket_size: ignored('number', 'parameters are gathered in the buckets of the gradients'),
  use_multi_rank_bucket_allreduce: holds('boolean', 'one exchange serves all owners of a bucket'),
  round_robin_gradients: holds('boolean', 'every rank owns an equal part of every bucket'),
  parameter_alignment: holds('boolean', 'every parameter is aligned to a block of 4096 elements'),
  compute_grad_norm: holds('boolean', 'the norm is always computed'),
  elastic_checkpoint: holds('boolean', 'every checkpoint can be resumed on any number of ranks'),
  log_trace_cache_warnings: ignored('boolean', 'there is no trace cache'),
  enable_sanity_checks: holds('boolean', 'the arrival of every gradient is always checked'),
  legacy_stage1: only([false], 'there is one stage 1'),
  zenflow: refused('updates are never delayed'),
  ...STAGE_3_KEYS,
});

export const AIO: Key = ignored('any', NVME);
