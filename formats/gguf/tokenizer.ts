/** A job's tokenizer as GGUF metadata. */
import { ChatTemplate } from '../encoding/chat-template.js';
import { HfTokenizer, type TokenizerFiles } from '../encoding/hf-tokenizer.js';
import { stopTokens } from '../encoding/stop-tokens.js';
import { TOKENIZER_FILE } from '../models/documents.js';
import { jsonObject } from '../models/read-document.js';
import { BYTE_OF_CHARACTER } from '../tokenizer/characters.js';
import { byteLevelTokens, isByteLevel } from './byte-level.js';
import { bool, type GgufMetadata, int32s, string, strings, uint32 } from './file.js';
import { orNull } from './or-null.js';
import { sentencepieceTokens } from './sentencepiece.js';
import { TOKEN_TYPES, type Token, tokenizerFile, unsupported } from './vocabulary.js';

export interface GgufTokenizer {
  metadata: GgufMetadata;
  /** Texts of the tokens at which answers end. */
  stops: readonly string[];
  /** Text of the token that programs add before a prompt; null: none. */
  beginText: string | null;
  /** Null: no chats. */
  template: ChatTemplate | null;
}

interface ChatSource {
  template: string | null;
  /** True if the model was trained on chats of this template. */
  isTrained: boolean;
  /** Date of `strftime_now`. */
  date: string | null;
}

/**
 * Returns a tokenizer that gives llama.cpp the tokens of the training.
 * @param vocabSize rows of the model's embedding
 * @throws ZerofleetError `export_unsupported`, `tokenizer_invalid`, `chat_template_invalid`
 */
export function ggufTokenizer(files: TokenizerFiles, vocabSize: number, chat: ChatSource): GgufTokenizer {
  const hf = new HfTokenizer(files, false);
  const template =
    chat.template === null
      ? null
      : new ChatTemplate(chat.template, { tokens: hf.variables, date: chat.date });
  const prompt =
    template && chat.isTrained
      ? orNull(() => template.generationPrompt([{ role: 'user', content: 'a' }]).text)
      : null;
  const file = tokenizerFile(jsonObject(TOKENIZER_FILE, files.tokenizer, 'tokenizer_invalid'));
  const { tokenizer } = file;
  const inTurns = prompt !== null && tokenizer.added.some(({ content }) => prompt.startsWith(content));
  const { tokens, metadata } = isByteLevel(file)
    ? byteLevelTokens(file, vocabSize)
    : sentencepieceTokens(file, vocabSize, inTurns);
  const [bos, ...others] = tokenizer.around.before;
  if (others.length > 0) throw unsupported('it adds several tokens before a text');
  const named = (name: string) => tokenizer.id(hf.variables[name] ?? '');
  const begin = bos ?? named('bos_token');
  const beginText = begin === null ? null : (tokens[begin]?.text ?? null);
  // Chats are trained with what the template writes, other texts with what the tokenizer adds.
  const addsBegin = prompt === null ? bos !== undefined : beginText !== null && prompt.startsWith(beginText);
  const stops = stopTokens(hf, template);
  return {
    metadata: [
      ...metadata,
      ...tokenMetadata(tokens),
      ...ids({ bos: begin, unknown: named('unk_token'), padding: named('pad_token') }),
      ...ends(stops, tokens),
      ['tokenizer.ggml.add_bos_token', bool(addsBegin)],
      ['tokenizer.ggml.add_eos_token', bool(false)],
      ...(chat.template === null ? [] : ([['tokenizer.chat_template', string(chat.template)]] as const)),
    ],
    stops: stops.map((id) => tokens[id]?.text ?? ''),
    beginText: addsBegin ? beginText : null,
    template,
  };
}

/**
 * Returns the tokenizer `bytes`: byte-level BPE without merges. llama.cpp has no model without an end token, so the
 * byte 0, which no text has, is that token.
 */
export function ggufBytes(vocabSize: number): GgufTokenizer {
  const characters = [...BYTE_OF_CHARACTER].sort(([, a], [, b]) => a - b);
  const tokens = Array.from({ length: vocabSize }, (_, id): Token => {
    const [character] = characters[id] ?? [];
    return character === undefined
      ? { text: `[PAD${id}]`, type: 'unused' }
      : { text: character, type: 'normal' };
  });
  return {
    metadata: [
      ['tokenizer.ggml.model', string('gpt2')],
      ['tokenizer.ggml.pre', string('gpt-2')],
      ['tokenizer.ggml.merges', strings([])],
      ...tokenMetadata(tokens),
      ['tokenizer.ggml.eos_token_id', uint32(0)],
      ['tokenizer.ggml.add_bos_token', bool(false)],
      ['tokenizer.ggml.add_eos_token', bool(false)],
    ],
    stops: [],
    beginText: null,
    template: null,
  };
}

function tokenMetadata(tokens: readonly Token[]): GgufMetadata {
  return [
    ['tokenizer.ggml.tokens', strings(tokens.map(({ text }) => text))],
    ['tokenizer.ggml.token_type', int32s(tokens.map(({ type }) => TOKEN_TYPES[type]))],
  ];
}

function ids(tokens: Readonly<Record<string, number | null>>): GgufMetadata {
  return Object.entries(tokens).flatMap(([name, id]) =>
    id === null ? [] : [[`tokenizer.ggml.${name}_token_id`, uint32(id)] as const],
  );
}

/** llama.cpp ends answers at both; without `eos_token_id` it takes a default that may be any token. */
function ends(stops: readonly number[], tokens: readonly Token[]): GgufMetadata {
  const [end = tokens.findIndex(({ type }) => type === 'unused' || type === 'control'), turn] = stops;
  if (end < 0) throw unsupported('it has no end-of-sequence token (eos_token)');
  return ids({ eos: end, eot: turn ?? null });
}
