import Papa from 'papaparse';
import { badLine, MAX_LINE_BYTES } from '../../../contracts/jsonl/line.js';
import type { LineBatch } from '../../../formats/datasets/line-batches.js';
import type { CsvHeader } from '../../contents/rows/read-csv.js';
import { FIELDS } from '../../contents/rows/row-fields.js';

const WANTED_BYTES = 256 * 1024;
/** Bytes of the longest header whose columns an error names; it is read in the event loop. */
const MAX_NAMED_HEADER = 4096;
/** Columns that an error names. */
const MAX_NAMES = 20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const NEWLINE = 0x0a;

export interface CsvBeginning extends CsvHeader {
  header_bytes: number;
}

/**
 * Returns the header of a CSV file; null if a line is none that has a field of documents.
 * @param line the first line of a content, with its end
 * @throws ZerofleetError `dataset_line_invalid`
 */
export function csvHeader(line: Buffer): CsvBeginning | null {
  const newline = line.at(-2) === 0x0d ? '\r\n' : '\n';
  const text = line
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .trimEnd();
  const { data, errors } = Papa.parse<string[]>(text, { delimiter: ',' });
  const columns = data[0] ?? [];
  if (errors.length > 0 || !columns.some((column) => FIELDS.includes(column))) return null;
  const twice = columns.find((column, at) => FIELDS.includes(column) && columns.indexOf(column) < at);
  if (twice !== undefined) throw badLine(1, `the column ${JSON.stringify(twice)} appears twice`);
  return { columns, newline, header_bytes: line.length };
}

/** Returns the error of a first line that is the header of a table without a field of documents; null for others. */
export function unknownColumns(line: Buffer): Error | null {
  if (line.length > MAX_NAMED_HEADER) return null;
  const { data, errors } = Papa.parse<string[]>(line.toString('utf8').trim(), { delimiter: '' });
  const columns = data[0] ?? [];
  const isHeader =
    columns.length > 1 && columns.every((column) => /^[\p{L}_][\p{L}\p{N}_ -]*$/u.test(column));
  if (errors.length > 0 || !isHeader) return null;
  const names = columns.slice(0, MAX_NAMES).map((name) => JSON.stringify(name));
  return badLine(
    1,
    `none of the columns ${names.join(', ')} is known; with commas between them, rename them, for example to prompt and completion, to ` +
      'question and answer, or to text',
  );
}

/**
 * Yields whole rows: a line end in quotes ends none. The batches depend on the pieces of the body; no result may.
 * @param body begins with the second line
 * @throws ZerofleetError `dataset_line_invalid` for a row that is too long; errors of the body
 */
export async function* csvBatches(body: AsyncIterable<Uint8Array>): AsyncGenerator<LineBatch> {
  const rows = new RowEnds();
  let pieces: Uint8Array[] = [];
  let pending = 0;
  let firstLine = 2;
  for await (const piece of body) {
    // A copy: the network reuses the piece's buffer.
    pieces.push(new Uint8Array(piece));
    rows.push(piece, pending);
    pending += piece.length;
    const { end, endLine } = rows;
    if (pending - end > MAX_LINE_BYTES)
      throw badLine(
        endLine,
        `a row has more than ${MAX_LINE_BYTES} bytes; split the document, or add a closing quote that is missing`,
      );
    if (pending < WANTED_BYTES || end === 0) continue;
    const bytes = Buffer.concat(pieces);
    yield { bytes: Uint8Array.from(bytes.subarray(0, end)), first_line: firstLine };
    pieces = [bytes.subarray(end)];
    pending -= end;
    firstLine = endLine;
    rows.end = 0;
  }
  if (pending > 0) yield { bytes: Uint8Array.from(Buffer.concat(pieces)), first_line: firstLine };
}

/** Finds the ends of rows. */
class RowEnds {
  /** Position after the last row that has ended; 0: none. */
  end = 0;
  /** Line that begins there, from 1. */
  endLine = 2;
  private line = 2;
  private isQuoted = false;
  /** A quote opens a quoted cell at the cell's begin, and after the quote that it doubles. */
  private mayOpen = true;

  /** @param offset position of the piece */
  push(piece: Uint8Array, offset: number): void {
    for (let at = 0; at < piece.length; at++) {
      const byte = piece[at];
      if (byte === NEWLINE) this.line += 1;
      if (this.isQuoted) {
        if (byte !== QUOTE) continue;
        this.isQuoted = false;
        this.mayOpen = true;
      } else if (byte === QUOTE && this.mayOpen) {
        this.isQuoted = true;
      } else {
        this.mayOpen = byte === COMMA || byte === NEWLINE;
        if (byte !== NEWLINE) continue;
        this.end = offset + at + 1;
        this.endLine = this.line;
      }
    }
  }
}
