import { isUtf8 } from 'node:buffer';
import { ZerofleetError } from '../../contracts/index.js';
import { BadLine, badLine, MAX_LINE_BYTES, parseLine } from '../../contracts/jsonl.js';
import type { ContentCheck } from './content-check.js';

const NEWLINE = 0x0a;

/** Checks each line of a JSONL upload as soon as it is there. Blank lines are passed over, and count in the numbers. */
export class JsonlCheck implements ContentCheck {
  private line = 1;
  private documents = 0;
  private chats = 0;
  /** The line that has not ended, in pieces. */
  private pieces: Uint8Array[] = [];
  private pending = 0;

  push(piece: Uint8Array): void {
    let begin = 0;
    for (;;) {
      const end = piece.indexOf(NEWLINE, begin);
      if (end < 0) break;
      this.take(piece.subarray(begin, end));
      this.endLine();
      this.line += 1;
      begin = end + 1;
    }
    // A copy: the piece is the network's buffer, and will be used again.
    this.take(Uint8Array.from(piece.subarray(begin)));
  }

  end() {
    this.endLine();
    if (this.documents === 0) throw new ZerofleetError('dataset_empty', 'no line of the body has a document');
    return { num_documents: this.documents, num_chats: this.chats, num_tokens: null, max_token: null };
  }

  private take(part: Uint8Array): void {
    this.pending += part.length;
    if (this.pending > MAX_LINE_BYTES)
      throw badLine(this.line, `it has more than ${MAX_LINE_BYTES} bytes; split the document`);
    if (part.length > 0) this.pieces.push(part);
  }

  private endLine(): void {
    const bytes = Buffer.concat(this.pieces);
    if (!isUtf8(bytes)) throw badLine(this.line, 'it is not UTF-8');
    const line = bytes.toString('utf8');
    this.pieces = [];
    this.pending = 0;
    if (line.trim() === '') return;
    try {
      const document = parseLine(line);
      this.documents += 1;
      if ('messages' in document) this.chats += 1;
    } catch (error) {
      throw error instanceof BadLine ? badLine(this.line, error.message) : error;
    }
  }
}
