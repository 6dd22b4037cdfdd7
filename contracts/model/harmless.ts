/** Fields of any `config.json` that say nothing about how this service computes. */
import type { ConfigReader } from './reader.js';

/** Where the file came from, and how transformers runs the model. */
const OF_THE_FILE = [
  'architectures',
  'transformers_version',
  'torch_dtype',
  'dtype',
  'tokenizer_class',
  'use_cache',
  'return_dict',
  'output_attentions',
  'output_hidden_states',
  'torchscript',
  'use_bfloat16',
  'tf_legacy_loss',
  'gradient_checkpointing',
  'chunk_size_feed_forward',
  'transformers.js_config',
  // What converters of other programs ask for.
  'is_llama_config',
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

/** Passes what changes nothing, and refuses what every family would have to be computed otherwise for. */
export function readCommon(reader: ConfigReader): void {
  reader.ignore(['model_type', ...OF_THE_FILE]);
  reader.ignoreAloud(OF_TASKS, 'models here only learn to continue texts');
  reader.ignoreAloud(
    OF_SAMPLING,
    'it says how texts are sampled, which is what generation_config.json is for',
  );
  const quantized =
    'the weights of a quantized model cannot be trained: take the model that it was made from';
  reader.only('quantization_config', [], quantized);
  reader.only('compression_config', [], quantized);
  reader.only('auto_map', [], 'code that comes with a model is not run: take a model of a known family');
  reader.only('per_layer_config', [], 'all layers have the same sizes');
  reader.only('pruned_heads', [{}], 'no head is left out');
  reader.only('is_encoder_decoder', [false], 'models here are decoders');
  reader.only('use_mrope', [false], 'positions have one dimension');
  reader.only('rope_interleaved', [false], 'the halves of a head are rotated, not its neighbours');
}
