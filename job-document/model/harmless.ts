/** Fields of any `config.json` that do not affect the computation. */
import type { Family } from './families/family.js';
import type { ConfigReader } from './reader.js';

/** Origin of the file, and notes of the programs that wrote it. */
const OF_THE_FILE = [
  'name_or_path',
  'transformers_version',
  'internal_version',
  'unsloth_version',
  'unsloth_fixed',
  'torch_dtype',
  'dtype',
  'tokenizer_class',
  'transformers.js_config',
  'is_llama_config',
];

/** Memory layout, kernels and outputs of a program; the model is the same. */
const OF_RUNNING = [
  'use_cache',
  'return_dict',
  'output_attentions',
  'output_hidden_states',
  'torchscript',
  'use_bfloat16',
  'tf_legacy_loss',
  'gradient_checkpointing',
  'chunk_size_feed_forward',
  'attn_implementation',
  'use_xformers',
  'sequence_parallel_enabled',
  'selective_checkpoint_enabled',
  'move_model_to_device',
  'expert_parallel_axis',
];

/** Fields of models for other tasks. */
const OF_TASKS = [
  'finetuning_task',
  'id2label',
  'label2id',
  'num_labels',
  'problem_type',
  'task_specific_params',
  'cross_attention_hidden_size',
  'tie_encoder_decoder',
  'is_decoder',
  'prefix',
  'unk_token_id',
  'sep_token_id',
  'decoder_start_token_id',
];

/** Sampling fields, which transformers 4 wrote to this file. */
const OF_SAMPLING = [
  'max_length',
  'min_length',
  'do_sample',
  'early_stopping',
  'num_beams',
  'num_beam_groups',
  'num_return_sequences',
  'temperature',
  'top_k',
  'top_p',
  'typical_p',
  'repetition_penalty',
  'length_penalty',
  'diversity_penalty',
  'no_repeat_ngram_size',
  'encoder_no_repeat_ngram_size',
  'bad_words_ids',
  'output_scores',
  'return_dict_in_generate',
  'forced_bos_token_id',
  'forced_eos_token_id',
  'remove_invalid_values',
  'exponential_decay_length_penalty',
  'suppress_tokens',
  'begin_suppress_tokens',
];

/** Fields of other models, accepted only with values that do not apply. */
const OF_OTHER_MODELS: readonly (readonly [name: string, values: readonly unknown[], why: string])[] = [
  ['per_layer_config', [], 'all layers have the same sizes'],
  ['pruned_heads', [{}], 'no head is left out'],
  ['is_encoder_decoder', [false], 'models here are decoders'],
  ['add_cross_attention', [false], 'cross attention to an encoder is not supported'],
  ['use_mrope', [false], 'positions have one dimension'],
  ['rope_interleaved', [false], 'rotary positions rotate the halves of a head, not adjacent elements'],
];

/**
 * Ignores harmless fields, and refuses fields that would change the computation in every family.
 */
export function readCommon(
  reader: ConfigReader,
  { causalLm, ownCode }: Pick<Family, 'causalLm' | 'ownCode'>,
): void {
  reader.ignore(['model_type', ...OF_THE_FILE, ...OF_RUNNING]);
  reader.ignoreWithWarning(['architectures'], `the trained model is ${causalLm}`, [[causalLm]]);
  reader.ignoreWithWarning(
    ['max_sequence_length'],
    'max_position_embeddings limits the length of a sequence',
  );
  reader.ignoreWithWarning(
    ['pretraining_tp'],
    'matrix products are computed without slices, with the same sum',
    [1],
  );
  reader.ignoreWithWarning(OF_TASKS, 'jobs train language models only');
  reader.ignoreWithWarning(
    OF_SAMPLING,
    'it configures text generation, which belongs in generation_config.json',
  );
  const quantized = 'the weights of a quantized model cannot be trained: use the original model';
  reader.only('quantization_config', [], quantized);
  reader.only('compression_config', [], quantized);
  refuseOwnCode(reader, ownCode);
  for (const [name, values, why] of OF_OTHER_MODELS) reader.only(name, values, why);
}

/** @param known accepted class; a file that transformers wrote has its repository before it, and `--` */
function refuseOwnCode(reader: ConfigReader, known: string | undefined): void {
  const code = known === undefined ? null : reader.section('auto_map');
  if (known !== undefined && code?.text('AutoModelForCausalLM')?.split('--').at(-1) === known) return;
  reader.only(
    'auto_map',
    [],
    'code in a model folder is not executed: remove the field if that code computes the same as transformers for model_type',
  );
}
