import t from 'tap';
import { CONFIG_KEYS } from './config-keys.js';
import type { Key, Keys } from './key.js';
import { OPTIMIZERS, REFUSED_OPTIMIZERS } from './optimizer-keys.js';
import { REFUSED_SCHEDULERS, SCHEDULERS } from './scheduler-keys.js';
import { walk } from './walk.js';

/**
 * All keys by section that DeepSpeed's configuration reference (docs/_pages/config-json.md) and the classes
 * that read the file (runtime/config.py, constants.py, precision_config.py, zero/config.py,
 * zero/offload_config.py) name.
 */
const DOCUMENTED: Readonly<Record<string, string>> = {
  '': `train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps managed_gradient_accumulation
    optimizer scheduler communication_data_type gradient_allreduce_op prescale_gradients gradient_predivide_factor
    sparse_gradients fp16 bf16 bfloat16 amp torch_autocast gradient_clipping zero_optimization aio tensor_parallel
    hybrid_engine expert_parallel disable_python_gc steps_per_print wall_clock_breakdown memory_breakdown dump_state
    autotuning flops_profiler activation_checkpointing sparse_attention data_efficiency curriculum_learning tensorboard
    wandb comet csv_monitor comms_logger comms_config monitor_config compression_training checkpoint compile data_types
    elasticity nebula
    datastates_ckpt progressive_layer_drop eigenvalue quantize_training weight_quantization pipeline graph_harvesting
    dataloader_drop_last disable_allgather vocabulary_size log_level timers zero_allow_untested_optimizer
    zero_force_ds_cpu_optimizer seq_parallel_comm_data_type seq_parallel_communication_data_type
    use_data_before_expert_parallelism sequence_parallel_size allgather_size`,
  optimizer: 'type params legacy_fusion',
  scheduler: 'type params',
  fp16: `enabled auto_cast loss_scale initial_scale_power loss_scale_window hysteresis consecutive_hysteresis
    min_loss_scale fused_mode fp16_master_weights_and_grads`,
  bf16: 'enabled immediate_grad_update check_grad_overflow bf16_master_weights_and_grads bf16_optimizer_states',
  zero_optimization: `stage allgather_partitions allgather_bucket_size compute_grad_norm overlap_comm reduce_scatter
    reduce_bucket_size contiguous_gradients load_from_fp32_weights round_robin_gradients parameter_alignment
    offload_param offload_optimizer stage3_max_live_parameters stage3_max_reuse_distance stage3_prefetch_bucket_size
    stage3_param_persistence_threshold sub_group_size stage3_gather_16bit_weights_on_model_save
    stage3_module_granularity_threshold zero_hpz_partition_size zero_quantized_weights zero_quantized_gradients
    log_trace_cache_warnings cpu_offload elastic_checkpoint ignore_unused_parameters use_multi_rank_bucket_allreduce
    zenflow cpu_offload_param cpu_offload_use_pin_memory prefetch_bucket_size param_persistence_threshold
    model_persistence_threshold stage3_model_persistence_threshold max_live_parameters max_reuse_distance
    gather_16bit_weights_on_model_save module_granularity_threshold stage3_use_all_reduce_for_fetch_params
    stage3_allgather_sequential stage3_partition_stream_chunk_size stage3_gather_fp16_weights_on_model_save
    legacy_stage1
    zero_quantized_nontrainable_weights zeropp_loco_param mics_shard_size mics_hierarchical_params_gather
    memory_efficient_linear pipeline_loading_checkpoint override_module_apply enable_sanity_checks
    save_muon_momentum_buffer_in_memory leaf_module`,
  'zero_optimization.offload_param': 'device nvme_path buffer_count buffer_size max_in_cpu pin_memory',
  'zero_optimization.offload_optimizer': `device nvme_path buffer_count pin_memory pipeline_read pipeline_write fast_init
    ratio super_offload convert_grad_on_cpu cpuadam_cores_perc`,
  aio: 'block_size queue_depth thread_count single_submit overlap_events',
  tensor_parallel: 'autotp_size preset_model tp_overlap_comm vocab_parallel_lm_head partition_config',
  flops_profiler: 'enabled profile_step module_depth top_modules detailed output_file',
  activation_checkpointing: `partition_activations cpu_checkpointing contiguous_memory_optimization number_checkpoints
    synchronize_checkpoint_boundary profile`,
  tensorboard: 'enabled output_path job_name',
  wandb: 'enabled group team project',
  comet: 'enabled workspace project samples_log_interval experiment_name api_key experiment_key online mode',
  csv_monitor: 'enabled output_path job_name',
  comms_logger: 'enabled verbose prof_all debug prof_ops',
  checkpoint: 'tag_validation load_universal use_node_local_storage parallel_write',
  'checkpoint.parallel_write': 'pipeline_stage',
  compile: 'deepcompile passes offload_activation offload_activation_pin_memory',
  data_types: 'grad_accum_dtype param_dtype buffer_dtype',
  torch_autocast: 'enabled dtype lower_precision_safe_modules',
};

/** Returns a value that the key's type accepts. */
function sampleOf(key: Key | undefined): unknown {
  if (key?.kind === 'section') return {};
  if (key?.kind === 'off') return { enabled: false };
  const type = key !== undefined && 'type' in key ? key.type : 'any';
  return { boolean: true, integer: 1, number: 1, string: 'fp32', list: [0.9, 0.99], any: 17 }[type];
}

function keyAt(path: readonly string[], keys: Keys = CONFIG_KEYS): Key | undefined {
  const [first = '', ...rest] = path;
  const key = Object.hasOwn(keys, first) ? keys[first] : undefined;
  return rest.length === 0 || key?.kind !== 'section' ? key : keyAt(rest, key.keys);
}

t.test('every documented key is mapped, holds, or is refused with a reason', async (t) => {
  for (const [section, names] of Object.entries(DOCUMENTED)) {
    const at = section.split('.').filter(Boolean);
    for (const name of names.split(/\s+/)) {
      const path = [...at, name];
      const config = path.reduceRight<unknown>((inner, step) => ({ [step]: inner }), sampleOf(keyAt(path)));
      const { errors } = walk(config, CONFIG_KEYS);
      const codes = new Set(errors.map(({ code }) => code));
      t.notOk(codes.has('deepspeed_key_unknown') || codes.has('wrong_type'), `${path.join('.')} is known`);
      t.ok(
        errors.every(({ message }) => message.length > name.length + 10),
        `${path.join('.')} has a reason`,
      );
    }
  }
});

t.test('keys missing from the list above are not in the tables either', async (t) => {
  const known = new Set(
    Object.entries(DOCUMENTED).flatMap(([section, names]) =>
      names.split(/\s+/).map((name) => (section === '' ? name : `${section}.${name}`)),
    ),
  );
  const all = (keys: Keys, at = ''): string[] =>
    Object.entries(keys).flatMap(([name, key]) => [
      at + name,
      ...(key.kind === 'section' ? all(key.keys, `${at}${name}.`) : []),
    ]);
  // Older names, which are not documented any more.
  const old =
    /^(bfloat16\.|zero_optimization\.cpu_offload_params$|zero_optimization\.offload_optimizer\.pipeline$)/;
  const undocumented = all(CONFIG_KEYS).filter((path) => !known.has(path) && !old.test(path));
  t.same(undocumented, ['checkpoint.writer', 'tensor_parallel.tp_size', 'tensor_parallel.tp']);
});

t.test('every optimizer and scheduler of DeepSpeed is supported or refused', async (t) => {
  const optimizers =
    'adagrad adam adamw lamb onebitadam zerooneadam onebitlamb muadam muadamw musgd lion muon';
  for (const name of optimizers.split(' ')) t.ok(name in OPTIMIZERS !== name in REFUSED_OPTIMIZERS, name);
  for (const name of ['LRRangeTest', 'OneCycle', 'WarmupLR', 'WarmupDecayLR', 'WarmupCosineLR'])
    t.ok(name in SCHEDULERS !== name in REFUSED_SCHEDULERS, name);
});

t.test('documented parameters of schedulers', async (t) => {
  const documented = {
    WarmupLR: 'warmup_min_lr warmup_max_lr warmup_num_steps warmup_type last_batch_iteration',
    WarmupDecayLR:
      'total_num_steps warmup_min_lr warmup_max_lr warmup_num_steps warmup_type last_batch_iteration',
    WarmupCosineLR:
      'total_num_steps warmup_min_ratio warmup_num_steps cos_min_ratio warmup_type last_batch_iteration',
  };
  for (const [name, params] of Object.entries(documented))
    t.same(Object.keys(SCHEDULERS[name]?.params ?? {}).sort(), params.split(' ').sort(), name);
});
