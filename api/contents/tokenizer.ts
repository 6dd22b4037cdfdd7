import { type Model, ZerofleetError } from '../../contracts/index.js';
import { SPECIAL_TOKENS_FILE, TOKENIZER_FILE, unreadTokenizer } from '../../formats/models/documents.js';
import { chatTemplateOf, vocabSizeOf } from '../../formats/models/tokenizer.js';
import { convertSentencepiece } from '../../formats/sentencepiece/tokenizer-file.js';
import { splitPatterns } from '../../formats/tokenizer/pre-tokenizers.js';
import { Tokenizer } from '../../formats/tokenizer/tokenizer.js';
import { requireDocumentSize } from './documents.js';

/** Equal to the limit of `data.chat_template`: records of models and jobs contain it. */
const MAX_TEMPLATE_LENGTH = 100_000;

type Json = Record<string, unknown>;

/** Files of a tokenizer that have arrived. */
export interface TokenizerDocuments {
  /** tokenizer.json */
  tokenizer?: Json;
  /** The model of SentencePiece that is read without a `tokenizer.json`. */
  sentencepiece?: { name: string; bytes: Uint8Array };
  /** tokenizer_config.json */
  config?: Json;
  /** special_tokens_map.json */
  special_tokens_map?: Json;
  /** added_tokens.json */
  added_tokens?: Json;
  /** chat_template.jinja */
  template?: string;
}

/** A file that a folder lacks, made of its others. */
export interface MadeFile {
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
}

export interface ReadTokenizer {
  /** Null without a tokenizer. */
  tokenizer: Model['tokenizer'];
  made: readonly MadeFile[];
}

/**
 * Checks that the tokenizer can encode text. Its chat template is not checked: a job may override it.
 * @param modelType of `config.json`
 * @throws ZerofleetError `tokenizer_invalid`, `model_too_large` for what is made of a model of SentencePiece
 */
export function readTokenizerFiles(documents: TokenizerDocuments, modelType: unknown): ReadTokenizer {
  const { tokenizer, sentencepiece, config = {}, special_tokens_map, added_tokens = {} } = documents;
  if (tokenizer !== undefined)
    return { tokenizer: describeTokenizer(tokenizer, documents, modelType), made: [] };
  if (sentencepiece === undefined) return { tokenizer: null, made: [] };
  const { name, bytes } = sentencepiece;
  const maps = { config, added_tokens, special_tokens_map: special_tokens_map ?? {} };
  const converted = convertSentencepiece(name, bytes, maps);
  const made = [madeFile(TOKENIZER_FILE, converted.tokenizer)];
  if (special_tokens_map === undefined)
    made.push(madeFile(SPECIAL_TOKENS_FILE, converted.special_tokens_map));
  const described = describeTokenizer(converted.tokenizer, documents, modelType);
  return { tokenizer: { ...described, made_from: name }, made };
}

function madeFile(name: string, document: Json): MadeFile {
  const bytes = new TextEncoder().encode(`${JSON.stringify(document)}\n`);
  requireDocumentSize(name, bytes.length);
  return { name, bytes };
}

/** @throws ZerofleetError `tokenizer_invalid` */
export function describeTokenizer(
  tokenizer: Json,
  { config = {}, template }: Pick<TokenizerDocuments, 'config' | 'template'> = {},
  modelType: unknown = null,
): NonNullable<Model['tokenizer']> {
  const vocabSize = vocabSizeOf(tokenizer);
  // A tokenizer that would encode differently from the Hugging Face library is refused here.
  new Tokenizer(tokenizer);
  const chatTemplate = chatTemplateOf(config, template);
  if (chatTemplate !== null && chatTemplate.length > MAX_TEMPLATE_LENGTH)
    throw invalid(
      `the chat template has ${chatTemplate.length} characters, at most ${MAX_TEMPLATE_LENGTH} are kept`,
    );
  return {
    vocab_size: vocabSize,
    chat_template: chatTemplate,
    ...(isWrongForMistral(tokenizer, modelType) && { flaw: 'split_pattern' as const }),
  };
}

/**
 * Pattern of Llama 3. Files of Mistral's byte-level models had it, converted by transformers before 4.57.2, although
 * the models were trained with another one.
 */
const LLAMA3_SPLIT =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
/** Families whose tokenizers transformers corrects with `fix_mistral_regex`. */
const MISTRAL_TYPES: readonly unknown[] = ['mistral', 'mistral3', 'ministral', 'pixtral', 'voxtral'];

function isWrongForMistral(tokenizer: Json, modelType: unknown): boolean {
  return MISTRAL_TYPES.includes(modelType) && splitPatterns(tokenizer.pre_tokenizer).includes(LLAMA3_SPLIT);
}

/** For the record of a model: its vocabularies, where they are not read. */
export function unreadIn(names: readonly string[]): Pick<Model, 'unread_tokenizer'> {
  const unread = unreadTokenizer(names);
  return unread.length === 0 ? {} : { unread_tokenizer: unread };
}

function invalid(reason: string): ZerofleetError {
  return new ZerofleetError('tokenizer_invalid', reason);
}
