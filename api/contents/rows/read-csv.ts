import { isUtf8 } from 'node:buffer';
import Papa from 'papaparse';
import { BadLine } from '../../../contracts/jsonl/fields.js';
import { badLine } from '../../../contracts/jsonl/line.js';
import type { LineBatch } from '../../../formats/datasets/line-batches.js';
import { FIELDS, jsonOfText } from './row-fields.js';
import { RowWriter, type WrittenRows } from './row-writer.js';

export interface CsvHeader {
  columns: string[];
  /** End of the header's line, and of the others. */
  newline: '\n' | '\r\n';
}

/** Whole rows of a CSV file. */
interface CsvBatch extends LineBatch, CsvHeader {}

const FAULTS: Readonly<Record<string, string>> = {
  MissingQuotes: 'a quoted cell has no closing quote',
  InvalidQuotes: 'a quoted cell continues behind its closing quote; write a quote in a cell as ""',
};

/** Converts rows to JSONL. An empty cell is an absent field. @throws ZerofleetError `dataset_line_invalid` */
export function readCsv({ bytes, first_line, columns, newline }: CsvBatch): WrittenRows {
  const text = textOf(bytes, first_line);
  const { data, errors } = Papa.parse<string[]>(text, { delimiter: ',', newline });
  // Of several faults of a row, the first one.
  const faults = new Map(errors.reverse().map(({ row, code, message }) => [row, FAULTS[code] ?? message]));
  const rows = new RowWriter('line');
  let line = first_line;
  for (const [index, cells] of data.entries()) {
    const fault = faults.get(index);
    if (fault !== undefined) throw badLine(line, fault);
    const isBlank = cells.length === 1 && cells[0] === '';
    if (!isBlank) rows.add(line, () => fieldsOf(cells, columns));
    line += 1 + cells.reduce((ends, cell) => ends + lineEnds(cell), 0);
  }
  return rows.end();
}

function* fieldsOf(cells: readonly string[], columns: readonly string[]): Generator<[string, string]> {
  if (cells.length !== columns.length)
    throw new BadLine(
      `it has ${cells.length} cells, and the header has ${columns.length}; put cells with commas into quotes`,
    );
  for (const [index, column] of columns.entries()) {
    const cell = cells[index] as string;
    if (cell !== '' && FIELDS.includes(column)) yield [column, jsonOfText(column, cell, columns)];
  }
}

function textOf(bytes: Uint8Array, firstLine: number): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (isUtf8(text)) return text.toString('utf8');
  let line = firstLine;
  for (let begin = 0; begin < text.length; line++) {
    const newline = text.indexOf(0x0a, begin);
    const end = newline < 0 ? text.length : newline + 1;
    if (!isUtf8(text.subarray(begin, end))) break;
    begin = end;
  }
  throw badLine(line, 'it is not UTF-8; save the file as UTF-8');
}

function lineEnds(cell: string): number {
  let ends = 0;
  for (let at = cell.indexOf('\n'); at >= 0; at = cell.indexOf('\n', at + 1)) ends += 1;
  return ends;
}
