import type { TextFlaw } from '../../job-document/index.js';

/** Tokens in the machine's byte order, which is little-endian on every platform of the native core. */
export type Tokens = Uint16Array | Uint32Array;

/** Consecutive tokens of a dataset: a document or a part of one. */
export interface TokenPiece {
  tokens: Tokens;
  /** 1 for each token that counts as a target; null: all of them. */
  counts: Uint8Array | null;
  /** True if the first of them begins a document. */
  starts: boolean;
  /** Line of the document; absent for data without lines. Several documents may be of one line. */
  line?: number;
  /** Of the document that begins; none if it is absent. */
  flaws?: readonly TextFlaw[];
}

/** Counts the targets among tokens [begin, end) of a call; the first token of a document is none. */
export function countTargets(counts: Uint8Array | null, begin: number, end: number, starts: boolean): number {
  const first = starts && begin === 0 ? 1 : begin;
  if (counts === null) return Math.max(0, end - first);
  let targets = 0;
  for (let i = first; i < end; i++) targets += counts[i] === 0 ? 0 : 1;
  return targets;
}
