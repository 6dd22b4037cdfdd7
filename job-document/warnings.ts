/**
 * Warnings about accepted documents. They depend on the document alone, so that a repeated request gets the
 * same ones.
 */

import type { JobSpec, Model, ResolvedJobSpec, Warning } from '../contracts/index.js';
import { importDeepspeed } from './deepspeed/import.js';
import { architectureOf } from './model/families/families.js';
import { importConfig } from './model/import.js';
import { DEFAULT_CHAT_TEMPLATE } from './resolve/tokenizer.js';

/**
 * @param document an accepted document
 * @param resolved the same with all defaults
 */
export function jobWarnings(
  document: JobSpec,
  { data }: { data: Pick<ResolvedJobSpec['data'], 'chat_template'> },
): Warning[] {
  const { config } = document.model;
  const isDefault = data.chat_template === DEFAULT_CHAT_TEMPLATE && !document.data.chat_template;
  return [
    ...(isDefault ? [DEFAULT_TEMPLATE_USED] : []),
    ...importDeepspeed(document).warnings,
    ...(config === undefined ? [] : configWarnings(config, '/model/config')),
  ];
}

const DEFAULT_TEMPLATE_USED: Warning = {
  pointer: '/data/chat_template',
  code: 'default_chat_template',
  message:
    'the base has no chat template, so its chats are written as ChatML (<|im_start|>role … <|im_end|>); set data.chat_template for another form',
};

/** Returns warnings with pointers into the model. */
export function modelWarnings(model: Model): Warning[] {
  const { config, model_type, unread_tokenizer = [], tokenizer } = model;
  return [
    ...(model_type === null ? [] : configWarnings(config, '/config')),
    ...unread_tokenizer.map(
      (name, i): Warning => ({
        pointer: `/unread_tokenizer/${i}`,
        code: 'tokenizer_not_read',
        message: `${name} is kept for exports, but only tokenizer.json and tokenizer.model are read: a job has to name another data.tokenizer, or bytes`,
      }),
    ),
    ...(tokenizer?.flaw === undefined ? [] : [WRONG_SPLIT]),
    ...mixedDtypes(model),
  ];
}

const WRONG_SPLIT: Warning = {
  pointer: '/tokenizer/flaw',
  code: 'tokenizer_flaw',
  message:
    "tokenizer.json splits texts at Llama 3's pattern, and Mistral's models were trained with another one, so some texts get other tokens than in the training; " +
    'it is used as it is. To correct it, save it with AutoTokenizer.from_pretrained(folder, fix_mistral_regex=True).save_pretrained(folder) of transformers',
};

/** A model of 16 bits may have some tensors in fp32, which answers round as transformers does. */
function mixedDtypes({ dtypes, adapter }: Model): Warning[] {
  const half = dtypes.filter((dtype) => dtype !== 'fp32');
  if (adapter !== undefined || half.length !== 1 || dtypes.length !== 2) return [];
  const message = `some weights are fp32 and others ${half[0]}; answers compute in ${half[0]} and round the fp32 ones to it. Training reads all of them exactly`;
  return [{ pointer: '/dtypes', code: 'mixed_dtypes', message }];
}

/** Rule for a text from which a model learns something else than its writer intends. */
interface FlawRule {
  pointer: string;
  /** Share of the texts above which the flaw is worth a warning; 0 by default. */
  above?: number;
  /** @param texts such as `2 of 3 texts` */
  message(texts: string): string;
}

const DATASET = '/data/dataset';
/** Suggested lengths are multiples of it. */
const LENGTH_STEP = 8;
/** The contract's limit of `train.sequence_length`. */
const MAX_LENGTH = 131_072;

const FLAWS = {
  no_stop_token: {
    pointer: '/data/chat_template',
    message: (texts) =>
      `in ${texts} no token that ends an answer is learned, so the model does not learn to stop: write the end of the turn inside of ` +
      "{% generation %}, as a special token of the tokenizer or as the tokenizer's end-of-sequence token",
  },
  repeated_begin: {
    pointer: DATASET,
    message: (texts) =>
      `${texts} begin with the token that the tokenizer or the template puts before each text, so the model reads it twice: leave it out of the texts, and set ` +
      'data.parse_special_tokens: true if they have other special tokens',
  },
  nothing_learned: {
    pointer: DATASET,
    message: (texts) =>
      `in ${texts} no token is learned: leave them out, or use a template that renders the messages of the assistant`,
  },
  cut: {
    pointer: '/train/sequence_length',
    above: 0.5,
    message: (texts) =>
      `${texts} do not fit into a sequence: documents are divided, and completions and chats lose their end; set a larger train.sequence_length`,
  },
  system_not_rendered: {
    pointer: '/data/chat_template',
    message: (texts) =>
      `the chat template leaves out the message of the role "system" in ${texts}, so the model never reads it: use a template that has this role, or write its text into the message of the user`,
  },
  reasoning_not_rendered: {
    pointer: '/data/chat_template',
    message: (texts) =>
      `the chat template leaves out the reasoning of the last answer in ${texts}, so it is not learned: name the field as the template reads it ("reasoning_content", "reasoning" or "thinking"), or write it into "content" between <think> and </think>`,
  },
} satisfies Readonly<Partial<Record<Warning['code'], FlawRule>>>;

export type TextFlaw = keyof typeof FLAWS;

/** Texts with a flaw. */
export interface FlawCount {
  texts: number;
  /** Line of the first one; null for data that has no lines. */
  first_line: number | null;
  /** For `cut`: the smallest `train.sequence_length` that all texts fit into. */
  needed_length?: number;
}

/** Counts of prepared texts, of which some may not teach what their writer intends. */
interface TextCounts {
  documents: number;
  flaws: Readonly<Partial<Record<TextFlaw, FlawCount>>>;
}

/** A dataset in warnings. */
interface WarnedDataset {
  /** Id of a dataset of a mixture, which messages name; null for a single dataset. */
  dataset: string | null;
  /** JSON pointer of the field that names it. */
  pointer: string;
}

/** Returns the largest `train.sequence_length` with a model. */
export function longestSequence({ config }: ResolvedJobSpec['model']): number {
  return Math.min(MAX_LENGTH, architectureOf(config).max_position_embeddings);
}

/**
 * Returns warnings about the texts of a dataset.
 * @param longest the largest length of sequences that is suggested
 */
export function dataWarnings(
  { documents, flaws }: TextCounts,
  longest: number,
  { dataset, pointer: ofDataset }: WarnedDataset = { dataset: null, pointer: DATASET },
): Warning[] {
  const about = dataset === null ? '' : `dataset ${dataset}: `;
  const rules = Object.entries(FLAWS) as [TextFlaw, FlawRule][];
  return rules.flatMap(([code, { pointer, above = 0, message }]) => {
    const { texts = 0, first_line = null, needed_length = null } = flaws[code] ?? {};
    if (texts <= documents * above) return [];
    const line = first_line === null ? '' : ` (the first in line ${first_line})`;
    const found = message(`${texts} of ${documents} texts${line}`);
    const warning = { pointer: pointer === DATASET ? ofDataset : pointer, code, message: about + found };
    const suggestion = Math.ceil((needed_length ?? Infinity) / LENGTH_STEP) * LENGTH_STEP;
    return suggestion > longest ? [warning] : [{ ...warning, suggestion }];
  });
}

function configWarnings(config: Readonly<Record<string, unknown>>, at: string): Warning[] {
  return importConfig(config).warnings.map((warning) => ({ ...warning, pointer: at + warning.pointer }));
}
