/** Tokens in the machine's byte order, which is little-endian on every platform of the native core. */
export type Tokens = Uint16Array | Uint32Array;

/** Consecutive tokens of a dataset: a document or a part of one. */
export interface TokenPiece {
  tokens: Tokens;
  /** 1 for each token that counts as a target; null: all of them. */
  counts: Uint8Array | null;
  /** True if the first of them begins a document. */
  starts: boolean;
  /** Of the document that begins; none if it is absent. */
  flaws?: TextFlaws;
}

/** What makes a model learn something else than the writer of a text wants. */
export interface TextFlaws {
  /** A chat, or a completion, without a learned token that ends answers: a model trained on it goes on for ever. */
  without_stop_token: boolean;
  /** The text begins with the token that the tokenizer puts before each text. */
  with_two_begins: boolean;
}

/** Counts the targets among tokens [begin, end) of a call; the first token of a document is none. */
export function countTargets(counts: Uint8Array | null, begin: number, end: number, starts: boolean): number {
  const first = starts && begin === 0 ? 1 : begin;
  if (counts === null) return Math.max(0, end - first);
  let targets = 0;
  for (let i = first; i < end; i++) targets += counts[i] === 0 ? 0 : 1;
  return targets;
}
