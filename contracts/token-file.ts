/**
 * Layout of a token file, as in `native/data/token_file.h`: prepared by the workers for the ranks, and, without
 * sequences, uploaded as a dataset of `format=tokens`.
 *
 * Header, tokens, sequences, documents, loss mask; little-endian, each table padded with zeros to a multiple of 8
 * bytes.
 */

export const TOKEN_FILE_HEADER_BYTES = 48;

const MAGIC = 'zftokens';
const VERSION = 1;

export interface TokenFileHeader {
  token_bytes: 2 | 4;
  num_tokens: number;
  num_sequences: number;
  num_documents: number;
  /** Input tokens of a sequence; 0 without sequences. */
  sequence_length: number;
}

/** Offset of each table, and the end of the file. */
export interface TokenFileLayout {
  tokens: number;
  sequences: number;
  documents: number;
  mask: number;
  end: number;
}

export function padded(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

export function tokenFileLayout(header: TokenFileHeader): TokenFileLayout {
  const tokens = TOKEN_FILE_HEADER_BYTES;
  const sequences = tokens + padded(header.num_tokens * header.token_bytes);
  const documents = sequences + header.num_sequences * 8;
  const mask = documents + header.num_documents * 8;
  return { tokens, sequences, documents, mask, end: mask + padded(Math.ceil(header.num_tokens / 8)) };
}

export function encodeTokenFileHeader(header: TokenFileHeader): Uint8Array {
  const bytes = new Uint8Array(TOKEN_FILE_HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(MAGIC));
  view.setUint32(8, VERSION, true);
  view.setUint32(12, header.token_bytes, true);
  const counts = [header.num_tokens, header.num_sequences, header.num_documents, header.sequence_length];
  for (const [index, count] of counts.entries()) view.setBigUint64(16 + 8 * index, BigInt(count), true);
  return bytes;
}

/**
 * Null if the bytes are not a header of this version. Counts are not validated: compare `tokenFileLayout().end` with
 * the size.
 */
export function decodeTokenFileHeader(bytes: Uint8Array): TokenFileHeader | null {
  if (bytes.length < TOKEN_FILE_HEADER_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = new TextDecoder('latin1').decode(bytes.subarray(0, MAGIC.length));
  const tokenBytes = view.getUint32(12, true);
  if (magic !== MAGIC || view.getUint32(8, true) !== VERSION || (tokenBytes !== 2 && tokenBytes !== 4))
    return null;
  const [numTokens = 0, numSequences = 0, numDocuments = 0, sequenceLength = 0] = [16, 24, 32, 40].map(
    (offset) => Number(view.getBigUint64(offset, true)),
  );
  return {
    token_bytes: tokenBytes,
    num_tokens: numTokens,
    num_sequences: numSequences,
    num_documents: numDocuments,
    sequence_length: sequenceLength,
  };
}
