/** Reads rows of a Parquet file. What hyparquet allocates is bounded by the checks here. */
import { type FileMetaData, parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { ZerofleetError } from '../../../contracts/index.js';
import type { ReadBytes } from '../../../platform/threads/serve-tasks.js';
import { jsonOfValue } from './json-of-value.js';
import { FIELDS, fieldsIn, jsonOfText } from './row-fields.js';
import { RowWriter, type WrittenRows } from './row-writer.js';

interface ParquetFile {
  file_bytes: number;
}

/** Rows `[begin, end)` of whole row groups. */
interface ParquetRows {
  begin: number;
  end: number;
}

/** Of a row group without compression, in the columns that are read. */
const MAX_GROUP_BYTES = 256 * 1024 * 1024;
/** Repeated values of a dictionary become longer in JSONL. */
const MAX_LINES_BYTES = 2 * MAX_GROUP_BYTES;
/** Row groups are read together up to this size. */
const WANTED_BYTES = 16 * 1024 * 1024;
const MAX_FOOTER_BYTES = 32 * 1024 * 1024;
const TAIL_BYTES = 8;

/** Returns the rows to read at a time. @throws ZerofleetError `dataset_parquet_invalid` */
export async function planParquet(input: ParquetFile, read: ReadBytes): Promise<ParquetRows[]> {
  return reading(input, read, async ({ metadata, columns }) => {
    const plan: ParquetRows[] = [];
    let begin = 0;
    let bytes = 0;
    let last: ParquetRows | null = null;
    for (const [index, group] of metadata.row_groups.entries()) {
      const end = begin + Number(group.num_rows);
      const groupBytes = group.columns
        .filter(({ meta_data }) => columns.includes(meta_data?.path_in_schema[0] ?? ''))
        .reduce((sum, { meta_data }) => sum + Number(meta_data?.total_uncompressed_size ?? 0), 0);
      if (groupBytes > MAX_GROUP_BYTES) throw groupTooLarge(`row group ${index}`, groupBytes);
      bytes += groupBytes;
      if (last === null || bytes > WANTED_BYTES) {
        last = { begin, end };
        plan.push(last);
        bytes = groupBytes;
      } else last.end = end;
      begin = end;
    }
    return plan;
  });
}

/**
 * Converts rows to JSONL. Null is an absent field. @throws ZerofleetError `dataset_parquet_invalid`,
 * `dataset_line_invalid`
 */
export async function readParquet(
  { begin, end, ...file }: ParquetFile & ParquetRows,
  read: ReadBytes,
): Promise<WrittenRows> {
  return reading(file, read, async ({ buffer, metadata, columns }) => {
    const found = await parquetReadObjects({
      file: buffer,
      metadata,
      columns,
      rowStart: begin,
      rowEnd: end,
      compressors: bounded,
      parsers: PARSERS,
    });
    const error = () => groupTooLarge(`what the rows ${begin + 1} to ${end} contain`, MAX_LINES_BYTES);
    const rows = new RowWriter('row', { bytes: MAX_LINES_BYTES, error });
    for (const [index, row] of found.entries()) rows.add(begin + index + 1, () => fieldsOf(row, columns));
    return rows.end();
  });
}

function* fieldsOf(row: Readonly<Record<string, unknown>>, columns: readonly string[]) {
  for (const column of columns) {
    const value = row[column] ?? null;
    if (value === null) continue;
    const isNumber = typeof value === 'number' || typeof value === 'bigint';
    const cell = column === 'label' && isNumber ? String(value) : value;
    const json =
      typeof cell === 'string' ? jsonOfText(column, cell, columns) : jsonOfValue(cell, `column "${column}"`);
    yield [column, json] as const;
  }
}

interface OpenFile {
  buffer: { byteLength: number; slice(begin: number, end?: number): Promise<ArrayBuffer> };
  metadata: FileMetaData;
  columns: string[];
}

/** Opens a file, and makes errors of the library those of the file. Errors of `read` pass. */
async function reading<T>(
  { file_bytes }: ParquetFile,
  read: ReadBytes,
  work: (file: OpenFile) => Promise<T>,
): Promise<T> {
  let failure: unknown;
  const slice = async (begin: number, end = file_bytes): Promise<ArrayBuffer> => {
    if (begin < 0 || begin > end || end > file_bytes) throw invalid('a table lies outside of it');
    if (end - begin > MAX_LINES_BYTES) throw groupTooLarge('a row group', end - begin);
    const bytes = await read(begin, end).catch((error) => {
      failure = error;
      throw error;
    });
    return Uint8Array.from(bytes).buffer;
  };
  try {
    await checkFooter(file_bytes, slice);
    const buffer = { byteLength: file_bytes, slice };
    const metadata = await parquetMetadataAsync(buffer, { parsers: PARSERS, geoparquet: false });
    return await work({ buffer, metadata, columns: columnsOf(metadata) });
  } catch (error) {
    if (failure !== undefined) throw failure;
    throw error instanceof ZerofleetError ? error : invalid((error as Error).message);
  }
}

async function checkFooter(fileBytes: number, slice: OpenFile['buffer']['slice']): Promise<void> {
  if (fileBytes < 2 * TAIL_BYTES) throw invalid('it is truncated');
  const tail = Buffer.from(await slice(fileBytes - TAIL_BYTES));
  if (tail.toString('latin1', 4) !== 'PAR1') throw invalid('it does not end with PAR1; it may be truncated');
  const bytes = tail.readUInt32LE(0);
  if (bytes > MAX_FOOTER_BYTES)
    throw invalid(
      `its footer has ${bytes} bytes, and at most ${MAX_FOOTER_BYTES} are possible; write larger row groups`,
    );
}

function columnsOf(metadata: FileMetaData): string[] {
  const names = parquetSchema(metadata).children.map(({ element }) => element.name);
  const columns = fieldsIn(names);
  if (columns.length > 0) return columns;
  const some = names.slice(0, 20).map((name) => JSON.stringify(name));
  throw invalid(`it has the columns ${some.join(', ')}, and needs at least one of ${FIELDS.join(', ')}`);
}

const utf8 = new TextDecoder('utf-8', { fatal: true });
const stringOf = (bytes: Uint8Array | undefined) => bytes && utf8.decode(bytes);
const PARSERS = { stringFromBytes: stringOf, jsonFromBytes: stringOf };

/** The size of a page is written in the page, so it may be anything. */
const bounded = Object.fromEntries(
  Object.entries(compressors).map(([name, decompress]) => [
    name,
    (input: Uint8Array, bytes: number) => {
      if (bytes > MAX_GROUP_BYTES) throw groupTooLarge('a page', bytes);
      return decompress(input, bytes);
    },
  ]),
);

function groupTooLarge(what: string, bytes: number): ZerofleetError {
  return invalid(
    `${what} has ${bytes} bytes or more, and row groups may have at most ${MAX_GROUP_BYTES}; write smaller ones, such as with row_group_size=10000 in pyarrow and pandas`,
  );
}

function invalid(what: string): ZerofleetError {
  return new ZerofleetError(
    'dataset_parquet_invalid',
    `the content is not a Parquet file that can be read: ${what}`,
  );
}
