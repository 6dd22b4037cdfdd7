import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import {
  encodeTokenFileHeader,
  padded,
  TOKEN_FILE_HEADER_BYTES,
  type TokenFileHeader,
} from '../../../contracts/token-file.js';
import type { Tokens } from '../../../formats/encoding/tokens.js';
import { MaskSpool } from './mask-spool.js';
import { PositionSpool, readWhole, Spool, writeWhole } from './spool.js';

export interface TokenFileShape {
  token_bytes: 2 | 4;
  sequence_length: number;
}

interface FinishedTokenFile extends TokenFileHeader {
  /** Input tokens of all sequences, without padding. */
  useful_tokens: number;
}

/** Writes a token file (see contracts/token-file.ts) from a stream of tokens, with constant memory. */
export class TokenFileWriter {
  private readonly fd: number;
  private readonly sequences: PositionSpool;
  private readonly documents: PositionSpool;
  private readonly mask: MaskSpool;
  private written = 0;
  private closed = false;

  constructor(
    private readonly path: string,
    private readonly shape: TokenFileShape,
  ) {
    this.fd = openSync(path, 'wx+');
    this.sequences = new PositionSpool(`${path}.sequences.tmp`);
    this.documents = new PositionSpool(`${path}.documents.tmp`);
    this.mask = new MaskSpool(new Spool(`${path}.mask.tmp`));
    writeWhole(this.fd, new Uint8Array(TOKEN_FILE_HEADER_BYTES));
  }

  get numTokens(): number {
    return this.written;
  }

  get numSequences(): number {
    return this.sequences.count;
  }

  /**
   * Appends tokens.
   * @param counts 1 for each token that counts as a target; null: all of them
   * @param starts true if the first of them begins a document
   */
  append(tokens: Tokens, counts: Uint8Array | null, starts: boolean): void {
    if (starts) this.documents.push(this.written);
    writeWhole(this.fd, this.bytesOf(tokens));
    this.mask.push(tokens.length, counts);
    this.written += tokens.length;
  }

  /** Begins a sequence at this position; positions must ascend. */
  sequence(begin: number): void {
    this.sequences.push(begin);
  }

  *positions(): Generator<number> {
    yield* this.sequences.positions();
  }

  /** Reads appended tokens and their mask. */
  read(begin: number, count: number): { tokens: Tokens; counts: Uint8Array } {
    const { token_bytes } = this.shape;
    const bytes = readWhole(this.fd, TOKEN_FILE_HEADER_BYTES + begin * token_bytes, count * token_bytes);
    const tokens = token_bytes === 2 ? new Uint16Array(bytes.buffer) : new Uint32Array(bytes.buffer);
    return { tokens, counts: this.mask.read(begin, count) };
  }

  /** Finishes the file with the sequences that `keeps` selects by number, and flushes it to disk. */
  finish(keeps: (index: number) => boolean = () => true): FinishedTokenFile {
    this.align(this.written * this.shape.token_bytes);
    const { numSequences, usefulTokens } = this.writeSequences(keeps);
    this.documents.copyTo(this.fd);
    for (const piece of this.mask.finish()) writeWhole(this.fd, piece);
    this.align(Math.ceil(this.written / 8));
    const header = {
      ...this.shape,
      num_tokens: this.written,
      num_sequences: numSequences,
      num_documents: this.documents.count,
    };
    writeSync(this.fd, encodeTokenFileHeader(header), 0, TOKEN_FILE_HEADER_BYTES, 0);
    fsyncSync(this.fd);
    this.close();
    return { ...header, useful_tokens: usefulTokens };
  }

  /** Closes the file and removes the temporary files. Idempotent. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    closeSync(this.fd);
    for (const spool of [this.sequences, this.documents, this.mask]) spool.close();
  }

  /** A sequence ends before the next one, as in native/data/sequence_reader.h. */
  private writeSequences(keeps: (index: number) => boolean) {
    const kept = new PositionSpool(`${this.path}.kept.tmp`);
    const { sequence_length } = this.shape;
    let [index, usefulTokens, last] = [0, 0, null as number | null];
    const endAt = (end: number) => {
      if (last !== null) usefulTokens += Math.min(sequence_length, end - last);
    };
    try {
      for (const position of this.sequences.positions()) {
        if (!keeps(index++)) continue;
        endAt(position);
        last = position;
        kept.push(position);
      }
      endAt(this.written);
      kept.copyTo(this.fd);
      return { numSequences: kept.count, usefulTokens };
    } finally {
      kept.close();
    }
  }

  private bytesOf(tokens: Tokens): Uint8Array {
    const { token_bytes } = this.shape;
    const wide = tokens.BYTES_PER_ELEMENT === 4;
    const same = wide === (token_bytes === 4);
    const stored = same ? tokens : token_bytes === 4 ? new Uint32Array(tokens) : new Uint16Array(tokens);
    return new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength);
  }

  private align(bytes: number): void {
    writeWhole(this.fd, new Uint8Array(padded(bytes) - bytes));
  }
}
