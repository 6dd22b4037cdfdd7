/** Content of `format=jsonl`: lines of JSONL, or another container of rows, which is stored as JSONL. */
import { ZerofleetError } from '../../../contracts/index.js';
import { type LineCounts, NO_LINES } from '../../contents/check-lines.js';
import type { WrittenRows } from '../../contents/rows/row-writer.js';
import { type CheckedPieces, checked } from '../content-check.js';
import { JsonlCheck } from '../jsonl-check.js';
import { peek } from '../unpack/peek.js';
import { type CsvBeginning, csvBatches, csvHeader, unknownColumns } from './csv.js';
import type { RowsDeps } from './deps.js';
import { linesOfArray, namingItems } from './json-array.js';
import { parquetRows } from './parquet.js';

export interface Rows {
  pieces: CheckedPieces;
  /** False if the pieces are those of the body. */
  is_converted: boolean;
}

const MAX_HEADER_BYTES = 64 * 1024;
const PARQUET = Buffer.from('PAR1');
const ARRAY = 0x5b;
const OBJECT = 0x7b;
const NEWLINE = 0x0a;

/** Recognizes the container by its beginning. @throws ZerofleetError `dataset_line_invalid`; errors of the body */
export async function rowsOf(given: AsyncIterable<Uint8Array>, deps: RowsDeps): Promise<Rows> {
  const { head, body } = await peek(given, isRecognizable);
  const lines = (content: AsyncIterable<Uint8Array>) => {
    const options = { owner: deps.project };
    return checked(content, new JsonlCheck((batch) => deps.inspector.run('checkLines', batch, options)));
  };
  if (head.subarray(0, PARQUET.length).equals(PARQUET))
    return { pieces: written(parquetRows(body, deps)), is_converted: true };
  if (firstByte(head) === ARRAY)
    return { pieces: namingItems(lines(linesOfArray(body))), is_converted: true };
  if (firstByte(head) === OBJECT) return { pieces: lines(body), is_converted: false };
  const csv = csvHeader(firstLine(head));
  if (csv !== null) return { pieces: written(csvRows(body, csv, deps)), is_converted: true };
  const unknown = unknownColumns(firstLine(head));
  if (unknown !== null) throw unknown;
  return { pieces: lines(body), is_converted: false };
}

function isRecognizable(head: Buffer): boolean {
  const first = firstByte(head);
  if (head.length >= MAX_HEADER_BYTES || first === ARRAY || first === OBJECT) return true;
  return head.length >= PARQUET.length && first !== undefined && head.includes(NEWLINE);
}

function firstByte(head: Buffer): number | undefined {
  return head.find((byte) => byte !== NEWLINE && byte !== 0x20 && byte !== 0x09 && byte !== 0x0d);
}

function firstLine(head: Buffer): Buffer {
  const newline = head.indexOf(NEWLINE);
  return newline < 0 ? head : head.subarray(0, newline + 1);
}

/** Reads a batch while the next one arrives. */
async function* csvRows(
  body: AsyncIterable<Uint8Array>,
  { header_bytes, columns, newline }: CsvBeginning,
  { inspector, project }: RowsDeps,
): AsyncGenerator<WrittenRows> {
  let last: Promise<WrittenRows> | null = null;
  for await (const batch of csvBatches(after(header_bytes, body))) {
    const next = inspector.run('readCsv', { ...batch, columns, newline }, { owner: project });
    // The body may fail before it is awaited; an unhandled rejection would end the process.
    next.catch(() => undefined);
    if (last !== null) yield await last;
    last = next;
  }
  if (last !== null) yield await last;
}

async function* after(skipped: number, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let left = skipped;
  for await (const piece of body) {
    if (left < piece.length) yield piece.subarray(left);
    left = Math.max(0, left - piece.length);
  }
}

async function* written(rows: AsyncIterable<WrittenRows>): CheckedPieces {
  const counts: LineCounts = { num_documents: 0, ...NO_LINES };
  for await (const { bytes, ...found } of rows) {
    for (const name of Object.keys(counts) as (keyof LineCounts)[]) counts[name] += found[name];
    if (bytes.length > 0) yield bytes;
  }
  if (counts.num_documents === 0) throw new ZerofleetError('dataset_empty', 'the body has no row');
  return { ...counts, num_tokens: null, max_token: null };
}
