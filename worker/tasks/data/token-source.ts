import type { Dataset } from '../../../contracts/index.js';
import { lineBatches } from '../../../formats/datasets/line-batches.js';
import type { Batch, EncodedBatch, EncoderSetup } from '../../../formats/encoding/encode-batch.js';
import { EncoderPool } from '../../../formats/encoding/encoder-pool.js';
import { textPieces, withLineFeeds } from '../../../formats/encoding/text-pieces.js';
import type { TokenPiece } from '../../../formats/encoding/tokens.js';
import { uploadedTokens } from './uploaded-tokens.js';

/** Converts the bytes of a dataset to tokens. */
type TokenSource = (bytes: AsyncIterable<Uint8Array>) => AsyncGenerator<TokenPiece>;

interface SourceOptions extends EncoderSetup {
  format: Dataset['format'];
  num_threads: number;
  /** Path of a temporary file that must not exist. */
  scratch: string;
}

/**
 * Returns the source for a dataset's format and tokenizer. Its tokens do not depend on the pieces in which the bytes
 * arrive.
 */
export function tokenSource(options: SourceOptions): TokenSource {
  switch (options.format) {
    case 'text':
      return options.tokenizer === null
        ? byteTokens
        : (bytes) => encoded(options, textPieces(withLineFeeds(bytes)));
    case 'jsonl':
      return (bytes) => encoded(options, lineBatches(bytes));
    case 'tokens':
      return (bytes) => uploadedTokens(bytes, options.scratch);
  }
}

/** Returns each byte as a token, without decoding the text. */
async function* byteTokens(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<TokenPiece> {
  let starts = true;
  for await (const chunk of bytes) {
    yield { tokens: new Uint16Array(chunk), counts: null, starts };
    starts = false;
  }
}

async function* encoded(
  { num_threads, ...setup }: SourceOptions,
  batches: AsyncIterable<Batch>,
): AsyncGenerator<TokenPiece> {
  const pool = new EncoderPool(setup, num_threads);
  try {
    for await (const batch of pool.encode(batches)) yield* documentsOf(batch);
  } finally {
    await pool.close();
  }
}

function* documentsOf({
  tokens,
  counts,
  lengths,
  lines,
  starts,
  flaws,
}: EncodedBatch): Generator<TokenPiece> {
  let begin = 0;
  for (const [index, length] of lengths.entries()) {
    const end = begin + length;
    const line = lines?.[index];
    const found = flaws[index];
    yield {
      tokens: tokens.subarray(begin, end),
      counts: counts?.subarray(begin, end) ?? null,
      starts,
      ...(line !== undefined && { line }),
      ...(found !== undefined && { flaws: found }),
    };
    begin = end;
  }
}
