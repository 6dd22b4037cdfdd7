import { ZerofleetError } from '../../contracts/index.js';
import { BadLine } from '../../contracts/jsonl/fields.js';
import { badLine, parseLine } from '../../contracts/jsonl/line.js';
import type { TextFlaw, Unit } from '../../job-document/index.js';
import type { LineBatch } from '../datasets/line-batches.js';
import { BytesTokenizer } from './bytes-tokenizer.js';
import { type ChatRules, ChatTemplate } from './chat-template.js';
import { DocumentEncoder, type EncodedDocument, type TextTokenizer } from './document-encoder.js';
import { HfTokenizer, type TokenizerFiles } from './hf-tokenizer.js';
import type { PromptTokenizer } from './prompt-tokenizer.js';
import { stopTokens } from './stop-tokens.js';
import type { TextPiece } from './text-pieces.js';

/** Tokenizer and template of an encoder. */
export interface EncoderSetup {
  /** Null: the tokenizer `bytes`. */
  tokenizer: TokenizerFiles | null;
  /** True if special tokens are parsed in texts and messages. */
  parse_special_tokens: boolean;
  /** Template for chats; null without chats. */
  chat_template: string | null;
  /** Date for the template; null if it uses none. */
  template_date: string | null;
  /** How chats are learned; the default for absent ones. */
  chat?: ChatRules;
  /** The unit of preferences; null for other data. */
  unit: Unit | null;
}

/** How a model turns texts and chats into tokens. */
export type TextRules = Omit<EncoderSetup, 'unit' | 'chat'>;

/** Text that is encoded at a time: lines of JSONL, or a part of one document. */
export type Batch = LineBatch | TextPiece;

/** Tokens of a batch: of its documents, or of a part of one. */
export interface EncodedBatch {
  tokens: Uint32Array;
  /** 1 for each token that counts as a target; null: all of them. */
  counts: Uint8Array | null;
  /** Number of tokens of each document. */
  lengths: number[];
  /** Lines of the documents; null for a text. */
  lines: number[] | null;
  flaws: (readonly TextFlaw[] | undefined)[];
  /** True if each begins a document; false for the continuation of one. */
  starts: boolean;
}

/** @throws ZerofleetError `tokenizer_invalid` */
export function tokenizerOf({
  tokenizer,
  parse_special_tokens,
}: Pick<EncoderSetup, 'tokenizer' | 'parse_special_tokens'>): TextTokenizer & PromptTokenizer {
  return tokenizer === null ? new BytesTokenizer() : new HfTokenizer(tokenizer, parse_special_tokens);
}

/** @throws ZerofleetError `tokenizer_invalid`, `chat_template_invalid` */
export function makeEncoder(setup: EncoderSetup): DocumentEncoder {
  const { chat_template, template_date: date, chat: rules, unit } = setup;
  const tokenizer = tokenizerOf(setup);
  const { variables: tokens, specialTexts } = tokenizer;
  const template =
    chat_template === null
      ? null
      : new ChatTemplate(chat_template, {
          tokens,
          special_texts: specialTexts,
          date,
          ...(rules && { rules }),
        });
  const stops = setup.tokenizer === null ? null : stopTokens(tokenizer, template);
  return new DocumentEncoder(tokenizer, template, unit, stops);
}

export class BatchEncoder {
  private readonly documents: DocumentEncoder;

  /** @throws as `makeEncoder` */
  constructor(setup: EncoderSetup) {
    this.documents = makeEncoder(setup);
  }

  /** @throws ZerofleetError naming the line, such as `dataset_line_invalid` */
  encode(batch: Batch): EncodedBatch {
    if ('first_line' in batch) return this.lines(batch);
    const { bytes, ...position } = batch;
    return gather([this.documents.encodePiece(textOf(bytes), position)], null, position.first);
  }

  private lines({ bytes, first_line }: LineBatch): EncodedBatch {
    const documents: EncodedDocument[] = [];
    const lines: number[] = [];
    for (const [index, line] of textOf(bytes).split('\n').entries()) {
      if (line.trim() === '') continue;
      const number = first_line + index;
      for (const document of ofLine(number, () => this.documents.encode(parseLine(line)))) {
        documents.push(document);
        lines.push(number);
      }
    }
    return gather(documents, lines, true);
  }
}

/** Does something with a line. @throws ZerofleetError of it, naming the line */
export function ofLine<T>(number: number, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof BadLine) throw badLine(number, error.message);
    if (!(error instanceof ZerofleetError)) throw error;
    throw new ZerofleetError(error.code, `line ${number}: ${error.message}`, { details: { line: number } });
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
}

function gather(
  documents: readonly EncodedDocument[],
  lines: number[] | null,
  starts: boolean,
): EncodedBatch {
  const lengths = documents.map(({ tokens }) => tokens.length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const tokens = new Uint32Array(total);
  const counts = documents.some((document) => document.counts) ? new Uint8Array(total).fill(1) : null;
  let at = 0;
  for (const document of documents) {
    tokens.set(document.tokens, at);
    if (document.counts) counts?.set(document.counts, at);
    at += document.tokens.length;
  }
  return { tokens, counts, lengths, lines, flaws: documents.map(({ flaws }) => flaws), starts };
}
