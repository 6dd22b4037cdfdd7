import { isUtf8 } from 'node:buffer';
import type { Dataset } from '../../contracts/index.js';
import { BadLine } from '../../contracts/jsonl/fields.js';
import {
  badLine,
  isPrompt,
  type JsonlDocument,
  MAX_LINE_BYTES,
  parseLine,
} from '../../contracts/jsonl/line.js';
import { LINE_TOO_LONG, type LineBatch } from '../../formats/datasets/line-batches.js';
import { type JsonLimits, jsonExcess } from '../../platform/json-limits.js';

/** Counts of what only lines can be. */
export const NO_LINES = { num_chats: 0, num_preferences: 0, num_labelled: 0, num_prompts: 0 };

export type LineCounts = Pick<Dataset, 'num_documents' | keyof typeof NO_LINES>;

const NEWLINE = 0x0a;
const BLANKS: readonly number[] = [...Buffer.from(' \t\r')];
/** A long chat has some thousand values; ignored fields may contain lists of numbers. */
const LINE_LIMITS: JsonLimits = { depth: 100, values: 500_000 };

/**
 * Checks lines of a JSONL dataset. Blank lines are skipped but counted in line numbers.
 * @throws ZerofleetError `dataset_line_invalid` with the number of the first bad one
 */
export function checkLines({ bytes, first_line }: LineBatch): LineCounts {
  const counts = { num_documents: 0, ...NO_LINES };
  let line = first_line;
  for (let begin = 0; begin < bytes.length; line++) {
    const newline = bytes.indexOf(NEWLINE, begin);
    const end = newline < 0 ? bytes.length : newline;
    if (!isBlank(bytes, begin, end)) checkLine(bytes.subarray(begin, end), line, counts);
    begin = end + 1;
  }
  return counts;
}

/** Recognizes most blank lines without allocation: a megabyte may contain a million of them. */
function isBlank(bytes: Uint8Array, begin: number, end: number): boolean {
  for (let at = begin; at < end; at++) if (!BLANKS.includes(bytes[at] as number)) return false;
  return true;
}

function checkLine(bytes: Uint8Array, line: number, counts: LineCounts): void {
  checkDocument(bytes, (what) => badLine(line, what), counts);
}

/**
 * Checks a document of JSONL and counts it, unless it is blank.
 * @param bad makes the error from what is wrong
 */
export function checkDocument(bytes: Uint8Array, bad: (what: string) => Error, counts: LineCounts): void {
  if (bytes.length > MAX_LINE_BYTES) throw bad(LINE_TOO_LONG);
  if (!isUtf8(bytes)) throw bad('it is not UTF-8');
  const excess = jsonExcess(bytes, LINE_LIMITS);
  if (excess !== null) throw bad(`it ${excess}`);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
  if (text.trim() === '') return;
  try {
    count(parseLine(text), counts);
  } catch (error) {
    throw error instanceof BadLine ? bad(error.message) : error;
  }
}

function count(document: JsonlDocument, counts: LineCounts): void {
  counts.num_documents += 1;
  if ('chosen' in document) counts.num_preferences += 1;
  if ('label' in document) counts.num_labelled += 1;
  if (isPrompt(document)) counts.num_prompts += 1;
  if ('messages' in document || ('prompt' in document && typeof document.prompt !== 'string'))
    counts.num_chats += 1;
}
