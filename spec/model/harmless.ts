/** Fields of any `config.json` that say nothing about what this service computes. */
import type { ConfigReader } from './reader.js';

/** Where the file came from, and what the programs that wrote it noted down for themselves. */
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

/** How a program lays the model out, which of its kernels it takes, and what it returns; the model is the same. */
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

/** Of models with another task. */
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

/** Of sampling; transformers 4 wrote them into this file. */
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

/** What sets other models apart: such a field may only say that this one is not so. */
const OF_OTHER_MODELS: readonly (readonly [name: string, values: readonly unknown[], why: string])[] = [
  ['per_layer_config', [], 'all layers have the same sizes'],
  ['pruned_heads', [{}], 'no head is left out'],
  ['is_encoder_decoder', [false], 'models here are decoders'],
  ['add_cross_attention', [false], 'there is no encoder to attend to'],
  ['use_mrope', [false], 'positions have one dimension'],
  ['rope_interleaved', [false], 'the halves of a head are rotated, not its neighbours'],
];

/**
 * Passes what changes nothing, and refuses what every family would have to be computed otherwise for.
 *
 * @param causalLm the class of transformers that is trained, whichever `architectures` names
 */
export function readCommon(reader: ConfigReader, causalLm: string): void {
  reader.ignore(['model_type', ...OF_THE_FILE, ...OF_RUNNING]);
  reader.ignoreAloud(['architectures'], `the model that is trained is ${causalLm}`, [[causalLm]]);
  reader.ignoreAloud(['max_sequence_length'], 'max_position_embeddings says how long a sequence may be');
  reader.ignoreAloud(['pretraining_tp'], 'matrix products are computed whole, which is the same sum', [1]);
  reader.ignoreAloud(OF_TASKS, 'models here only learn to continue texts');
  reader.ignoreAloud(
    OF_SAMPLING,
    'it says how texts are sampled, which is what generation_config.json is for',
  );
  const quantized =
    'the weights of a quantized model cannot be trained: take the model that it was made from';
  reader.only('quantization_config', [], quantized);
  reader.only('compression_config', [], quantized);
  reader.only(
    'auto_map',
    [],
    'code that comes with a model is not run: remove it if that code computes what transformers does for model_type',
  );
  for (const [name, values, why] of OF_OTHER_MODELS) reader.only(name, values, why);
}
