/** The beginning of a dataset as a job reads it, in an inspection thread (api/inspection/tasks.ts). */
import type { DataPreview, ResolvedJobSpec } from '../../contracts/index.js';
import { parseLine } from '../../contracts/jsonl/line.js';
import { DataCounts } from '../../formats/encoding/data-summary.js';
import type {
  DocumentEncoder,
  EncodedDocument,
  ReadableText,
} from '../../formats/encoding/document-encoder.js';
import { type EncoderSetup, makeEncoder, ofLine } from '../../formats/encoding/encode-batch.js';
import { type TokenizerBytes, tokenizerTexts } from '../../formats/encoding/tokenizer-store.js';
import { countTargets } from '../../formats/encoding/tokens.js';
import { dataWarnings } from '../../job-document/index.js';

/** The beginning of a dataset. */
export interface DataBeginning {
  /** Whole lines of JSONL, or a text that may end inside of a character. */
  content: Uint8Array;
  is_whole: boolean;
  format: 'text' | 'jsonl';
  /** Id of a dataset of a mixture; null for a single dataset. */
  dataset: string | null;
  /** JSON pointer of the field that names it. */
  pointer: string;
}

interface PreviewInput extends Omit<EncoderSetup, 'tokenizer'> {
  beginnings: readonly DataBeginning[];
  /** Files of the tokenizer; null: the tokenizer `bytes`. */
  tokenizer: TokenizerBytes | null;
  packing: ResolvedJobSpec['data']['packing'];
  sequence_length: number;
  /** The largest length of sequences that a warning suggests. */
  longest_sequence: number;
  /** Number of texts to return, of all datasets together. */
  num_texts: number;
}

interface ReadBeginning extends Pick<DataPreview, 'texts' | 'warnings'> {
  counts: Omit<NonNullable<DataPreview['read']>, 'share' | 'bytes'>;
}

type PreviewText = DataPreview['texts'][number];

interface EncodedText {
  text: ReadableText;
  encoded: EncodedDocument;
  /** Null for data without lines. */
  line: number | null;
}

/** UTF-16 units of a text that are returned. */
const SHOWN = 2_000;

/** @throws ZerofleetError `chat_template_invalid`, `dataset_line_invalid`, both naming the line; `tokenizer_invalid` */
export function previewData({ tokenizer, beginnings, num_texts, ...setup }: PreviewInput): ReadBeginning {
  const files = tokenizer && tokenizerTexts(tokenizer);
  const encoder = makeEncoder({ ...setup, tokenizer: files });
  const each = Math.floor(num_texts / beginnings.length);
  const more = num_texts % beginnings.length;
  const parts = beginnings.map((beginning, i) => {
    const all = encodedTexts(beginning, encoder, tokenizer === null);
    return previewPart(beginning, all, { ...setup, num_texts: each + (i < more ? 1 : 0) });
  });
  const sum = (name: keyof ReadBeginning['counts']) =>
    parts.reduce((all, { counts }) => all + counts[name], 0);
  return {
    counts: {
      texts: sum('texts'),
      tokens: sum('tokens'),
      targets: sum('targets'),
      long_texts: sum('long_texts'),
    },
    texts: parts.flatMap(({ texts }) => texts),
    warnings: parts.flatMap(({ warnings }) => warnings),
  };
}

function previewPart(
  { dataset, pointer }: DataBeginning,
  all: Iterable<EncodedText>,
  {
    packing,
    sequence_length,
    longest_sequence,
    num_texts,
  }: Pick<PreviewInput, 'packing' | 'sequence_length' | 'longest_sequence' | 'num_texts'>,
): ReadBeginning {
  const counts = new DataCounts(sequence_length, packing);
  const texts: PreviewText[] = [];
  for (const { text, encoded, line } of all) {
    counts.add({ ...encoded, starts: true, ...(line !== null && { line }) });
    if (texts.length < num_texts)
      texts.push({ ...shown(text, encoded), ...(dataset !== null && { dataset }) });
  }
  const summary = counts.end();
  const { documents, tokens, targets, long_documents } = summary;
  const longTexts = packing === 'split' ? 0 : long_documents;
  return {
    counts: { texts: documents, tokens, targets, long_texts: longTexts },
    texts,
    warnings: dataWarnings(summary, longest_sequence, { dataset, pointer }),
  };
}

function* encodedTexts(
  { content, is_whole, format }: Pick<DataBeginning, 'content' | 'is_whole' | 'format'>,
  encoder: DocumentEncoder,
  areBytes: boolean,
): Generator<EncodedText> {
  const decoded = new TextDecoder('utf-8', { ignoreBOM: true }).decode(content, { stream: !is_whole });
  if (format === 'text') {
    // A `tokenizer.json` reads CR LF as LF.
    const text = areBytes ? decoded : decoded.replaceAll('\r\n', '\n');
    const position = { first: true, last: is_whole, after_line: false };
    yield { text: { kind: 'document', text }, encoded: encoder.encodePiece(text, position), line: null };
    return;
  }
  for (const [index, line] of decoded.split('\n').entries()) {
    if (line.trim() === '') continue;
    const number = index + 1;
    yield* ofLine(number, () =>
      encoder
        .read(parseLine(line))
        .map((text) => ({ text, encoded: encoder.encodeText(text), line: number })),
    );
  }
}

function shown(text: ReadableText, { tokens, counts }: EncodedDocument): PreviewText {
  const parts = partsOf(text).filter(({ text }) => text !== '');
  const length = parts.reduce((sum, part) => sum + part.text.length, 0);
  let left = SHOWN;
  const kept = parts.flatMap(({ text, learned }) => {
    const part = { text: withoutHalf(text.slice(0, left)), learned };
    left -= part.text.length;
    return part.text === '' ? [] : [part];
  });
  const targets = countTargets(counts, 0, tokens.length, true);
  return { parts: kept, is_shortened: length > SHOWN, tokens: tokens.length, targets };
}

function partsOf(read: ReadableText): PreviewText['parts'] {
  if (read.kind === 'document') return [{ text: read.text, learned: true }];
  const text = typeof read.text === 'string' ? read.text : read.text.text;
  const learned = read.kind === 'chat' ? read.learned : [{ begin: read.begin, end: text.length }];
  let at = 0;
  const parts = learned.flatMap(({ begin, end }) => {
    const before = { text: text.slice(at, begin), learned: false };
    at = end;
    return [before, { text: text.slice(begin, end), learned: true }];
  });
  return [...parts, { text: text.slice(at), learned: false }];
}

/** Removes the first half of a character whose other half is cut off. */
const withoutHalf = (text: string) => text.replace(/[\ud800-\udbff]$/, '');
