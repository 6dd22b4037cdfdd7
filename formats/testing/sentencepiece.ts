/** Small models of SentencePiece with what it gives (formats/sentencepiece/golden/make_golden_sentencepiece.py). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../platform/process/root.js';

interface Golden {
  /** base64 */
  model: string;
  texts: { text: string; ids: number[]; known: number[]; prefixes: string[] | null; decoded: string }[];
}

export const SENTENCEPIECE_GOLDEN: Readonly<Record<string, Golden>> = JSON.parse(
  readFileSync(join(projectRoot(), 'formats', 'sentencepiece', 'golden', 'sentencepiece.json'), 'utf8'),
);

/** Returns a `tokenizer.model`. */
export function sentencepieceModel(name: string): Buffer {
  return Buffer.from(SENTENCEPIECE_GOLDEN[name]?.model ?? '', 'base64');
}
