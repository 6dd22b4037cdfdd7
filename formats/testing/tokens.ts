import {
  encodeTokenFileHeader,
  TOKEN_FILE_HEADER_BYTES,
  tokenFileLayout,
} from '../../contracts/token-file.js';

/** Returns a token file with one document without learned tokens. */
export function tokenFile(tokens: number[]): Buffer {
  const header = { token_bytes: 4, num_tokens: tokens.length, num_documents: 1 } as const;
  const whole = { ...header, num_sequences: 0, sequence_length: 0 };
  const file = Buffer.alloc(tokenFileLayout(whole).end);
  file.set(encodeTokenFileHeader(whole));
  for (const [index, token] of tokens.entries())
    file.writeUInt32LE(token, TOKEN_FILE_HEADER_BYTES + 4 * index);
  return file;
}
