import { ZerofleetError } from '../../contracts/index.js';
import {
  decodeTokenFileHeader,
  TOKEN_FILE_HEADER_BYTES,
  type TokenFileHeader,
  type TokenFileLayout,
  tokenFileLayout,
} from '../../contracts/token-file.js';
import { NO_LINES } from '../contents/check-lines.js';
import type { ContentCheck } from './content-check.js';

/** Every table begins at a multiple of it, in bytes. */
const ALIGNMENT = 8;
/** The native core stores tokens as signed 32-bit numbers. */
const MAX_TOKEN = 2 ** 31 - 1;

/**
 * Checks a token file without sequences (contracts/token-file.ts) while it arrives: its length matches the header, its
 * documents lie within its tokens. Determines the largest token. Memory does not depend on the file's size.
 */
export class TokensCheck implements ContentCheck {
  private header: TokenFileHeader | null = null;
  private layout: TokenFileLayout | null = null;
  /** Bytes that have arrived and are not consumed: less than a header, later less than ALIGNMENT bytes. */
  private rest: Uint8Array = new Uint8Array(0);
  /** File offset of `rest`. */
  private position = 0;
  private maxToken = 0;
  private lastDocument = -1;

  push(piece: Uint8Array): void {
    const bytes = new Uint8Array(this.rest.length + piece.length);
    bytes.set(this.rest);
    bytes.set(piece, this.rest.length);
    let at = 0;
    if (this.header === null && bytes.length >= TOKEN_FILE_HEADER_BYTES) {
      this.header = readHeader(bytes);
      this.layout = tokenFileLayout(this.header);
      at = TOKEN_FILE_HEADER_BYTES;
      this.position = at;
    }
    const end = this.header === null ? 0 : bytes.length - (bytes.length % ALIGNMENT);
    while (at < end) at += this.readTable(bytes.subarray(at, end));
    this.rest = bytes.slice(Math.max(at, end));
  }

  end() {
    const { header, layout, rest, position } = this;
    const arrived = position + rest.length;
    if (arrived === 0)
      throw new ZerofleetError('dataset_empty', 'the body has no bytes; a token file is required');
    if (header === null || layout === null)
      throw invalid(`it has ${arrived} bytes, and a header alone has ${TOKEN_FILE_HEADER_BYTES}`);
    if (arrived !== layout.end)
      throw invalid(`it ends after ${arrived} bytes; its header requires ${layout.end}`);
    const { num_tokens, num_documents } = header;
    return { num_documents, ...NO_LINES, num_tokens, max_token: this.maxToken };
  }

  /** Reads the part of the current table that `bytes` contains. Returns the number of bytes consumed. */
  private readTable(bytes: Uint8Array): number {
    const { position } = this;
    const { sequences: tokensEnd, documents, mask, end } = this.layout as TokenFileLayout;
    const tableEnd = [tokensEnd, mask, end].find((border) => position < border);
    if (tableEnd === undefined) throw invalid(`it continues after the ${end} bytes that its header requires`);
    const part = bytes.subarray(0, tableEnd - position);
    if (tableEnd === tokensEnd) this.readTokens(part);
    else if (tableEnd === mask) this.readDocuments(part, (position - documents) / 8);
    this.position += part.length;
    return part.length;
  }

  private readTokens(bytes: Uint8Array): void {
    const { token_bytes, num_tokens } = this.header as TokenFileHeader;
    const first = (this.position - TOKEN_FILE_HEADER_BYTES) / token_bytes;
    const count = Math.min(bytes.length / token_bytes, num_tokens - first);
    // `bytes` is aligned to ALIGNMENT in its own buffer.
    const { buffer, byteOffset } = bytes;
    const tokens =
      token_bytes === 2
        ? new Uint16Array(buffer, byteOffset, count)
        : new Uint32Array(buffer, byteOffset, count);
    let max = this.maxToken;
    for (let index = 0; index < count; index++) max = Math.max(max, tokens[index] as number);
    if (max > MAX_TOKEN) throw invalid(`it has the token ${max}; the largest allowed token is ${MAX_TOKEN}`);
    this.maxToken = max;
  }

  private readDocuments(bytes: Uint8Array, first: number): void {
    const { num_tokens } = this.header as TokenFileHeader;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = 0; at < bytes.length; at += 8) {
      const start = Number(view.getBigUint64(at, true));
      const document = first + at / 8;
      const where = `its document ${document} begins at token ${start}`;
      if (document === 0 && start !== 0) throw invalid(`${where}; the first one must begin at 0`);
      if (start >= num_tokens) throw invalid(`${where}, and it has ${num_tokens} tokens`);
      if (start <= this.lastDocument)
        throw invalid(`${where}, and the one before it at ${this.lastDocument}; the positions must ascend`);
      this.lastDocument = start;
    }
  }
}

/** @throws ZerofleetError `dataset_tokens_invalid` */
function readHeader(bytes: Uint8Array): TokenFileHeader {
  const header = decodeTokenFileHeader(bytes);
  if (header === null)
    throw invalid(
      'it does not begin with a token file header: "zftokens", version 1, and tokens of 2 or 4 bytes, all little-endian',
    );
  const { num_tokens, num_documents, num_sequences, sequence_length } = header;
  if (num_sequences !== 0 || sequence_length !== 0)
    throw invalid(
      'its header says that it is cut into sequences; num_sequences and sequence_length must be 0, because jobs cut it',
    );
  if (num_tokens === 0 || num_documents === 0)
    throw invalid(`its header says that it has ${num_tokens} tokens and ${num_documents} documents`);
  if (!Number.isSafeInteger(tokenFileLayout(header).end))
    throw invalid(
      `its header says that it has ${num_tokens} tokens and ${num_documents} documents, which is impossible`,
    );
  return header;
}

function invalid(reason: string): ZerofleetError {
  return new ZerofleetError('dataset_tokens_invalid', `the body is not a valid token file: ${reason}`);
}
