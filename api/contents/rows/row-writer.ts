import { BadLine } from '../../../contracts/jsonl/fields.js';
import { badDocument } from '../../../contracts/jsonl/line.js';
import { checkDocument, type LineCounts, NO_LINES } from '../check-lines.js';

/** Lines of JSONL, with what they are. */
export interface WrittenRows extends LineCounts {
  bytes: Uint8Array;
}

/** Writes rows of a table as checked lines of JSONL. */
export class RowWriter {
  private readonly counts: LineCounts = { num_documents: 0, ...NO_LINES };
  private readonly lines: Buffer[] = [];
  private bytes = 0;

  /** @param limit largest number of bytes, and the error beyond it */
  constructor(
    private readonly unit: 'line' | 'row',
    private readonly limit: { bytes: number; error(): Error } | null = null,
  ) {}

  /**
   * Adds a row.
   * @param fields yields its fields with their values as JSON; may throw a BadLine
   * @throws ZerofleetError `dataset_line_invalid`
   */
  add(number: number, fields: () => Iterable<readonly [name: string, json: string]>): void {
    const bad = (what: string) => badDocument(this.unit, number, what);
    let line: string;
    try {
      line = `{${Array.from(fields(), ([name, json]) => `"${name}": ${json}`).join(', ')}}\n`;
    } catch (error) {
      throw error instanceof BadLine ? bad(error.message) : error;
    }
    const bytes = Buffer.from(line);
    this.bytes += bytes.length;
    if (this.limit !== null && this.bytes > this.limit.bytes) throw this.limit.error();
    checkDocument(bytes.subarray(0, -1), bad, this.counts);
    this.lines.push(bytes);
  }

  end(): WrittenRows {
    const bytes = new Uint8Array(this.bytes);
    let at = 0;
    for (const line of this.lines) {
      bytes.set(line, at);
      at += line.length;
    }
    return { bytes, ...this.counts };
  }
}
