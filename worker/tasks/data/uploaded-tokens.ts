import { closeSync, fstatSync, openSync, rmSync } from 'node:fs';
import { ZerofleetError } from '../../../contracts/index.js';
import {
  decodeTokenFileHeader,
  TOKEN_FILE_HEADER_BYTES,
  type TokenFileHeader,
  tokenFileLayout,
} from '../../../contracts/token-file.js';
import type { TokenPiece } from '../../../formats/encoding/tokens.js';
import { readWhole, writeWhole } from './spool.js';

/** Tokens per read; a multiple of 8, for the bits of the mask. */
const BLOCK_TOKENS = 1 << 16;

/**
 * Returns the documents of a dataset of `format=tokens`. Its tables are stored one after the other and needed at the
 * same time, so the bytes are written to a file first; memory use is constant.
 * @param scratch path of that file; it is removed afterwards
 * @throws ZerofleetError `dataset_tokens_invalid`; errors of `bytes`
 */
export async function* uploadedTokens(
  bytes: AsyncIterable<Uint8Array>,
  scratch: string,
): AsyncGenerator<TokenPiece> {
  const fd = openSync(scratch, 'wx+');
  try {
    for await (const chunk of bytes) writeWhole(fd, chunk);
    yield* pieces(fd, readHeader(fd));
  } finally {
    closeSync(fd);
    rmSync(scratch, { force: true });
  }
}

function readHeader(fd: number): TokenFileHeader {
  const { size } = fstatSync(fd);
  const header =
    size < TOKEN_FILE_HEADER_BYTES ? null : decodeTokenFileHeader(readWhole(fd, 0, TOKEN_FILE_HEADER_BYTES));
  if (!header || tokenFileLayout(header).end !== size || header.num_sequences > 0)
    throw invalid('its header is not that of a token file without sequences, or its size does not match');
  return header;
}

function* pieces(fd: number, header: TokenFileHeader): Generator<TokenPiece> {
  const { num_tokens, token_bytes } = header;
  const layout = tokenFileLayout(header);
  const starts = documentStarts(fd, header);
  let start = starts.next();
  if (start.value !== 0) throw invalid('its first document does not begin at its first token');
  for (let begin = 0; begin < num_tokens; begin += BLOCK_TOKENS) {
    const count = Math.min(BLOCK_TOKENS, num_tokens - begin);
    const { buffer } = readWhole(fd, layout.tokens + begin * token_bytes, count * token_bytes);
    const tokens = token_bytes === 2 ? new Uint16Array(buffer) : new Uint32Array(buffer);
    const mask = readWhole(fd, layout.mask + begin / 8, Math.ceil(count / 8));
    const counts = Uint8Array.from({ length: count }, (_, i) => ((mask[i >> 3] ?? 0) >> (i & 7)) & 1);
    for (let at = 0; at < count; ) {
      const begins = start.value === begin + at;
      if (begins) start = starts.next();
      const end = Math.min(count, start.done ? count : start.value - begin);
      yield { tokens: tokens.subarray(at, end), counts: counts.subarray(at, end), starts: begins };
      at = end;
    }
  }
  if (!start.done) throw invalid('a document begins behind its last token');
}

/** Returns the position of the first token of each document; positions must ascend. */
function* documentStarts(fd: number, header: TokenFileHeader): Generator<number, undefined> {
  const { documents, mask } = tokenFileLayout(header);
  let last = -1;
  for (let offset = documents; offset < mask; ) {
    const bytes = readWhole(fd, offset, Math.min(8 * BLOCK_TOKENS, mask - offset));
    const view = new DataView(bytes.buffer);
    for (let at = 0; at < bytes.length; at += 8) {
      const start = Number(view.getBigUint64(at, true));
      if (start <= last) throw invalid('the positions of its documents do not ascend');
      yield start;
      last = start;
    }
    offset += bytes.length;
  }
  return undefined;
}

function invalid(reason: string): ZerofleetError {
  return new ZerofleetError('dataset_tokens_invalid', `the token file cannot be read: ${reason}`);
}
