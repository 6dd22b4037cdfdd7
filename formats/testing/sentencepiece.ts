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

/** Returns a field of a protocol buffer. */
export function protoField(number: number, content: Uint8Array): Buffer {
  const { length } = content;
  const size: number[] = [];
  for (let rest = length; ; rest >>= 7) {
    size.push(rest < 0x80 ? rest : (rest & 0x7f) | 0x80);
    if (rest < 0x80) break;
  }
  return Buffer.concat([Buffer.of((number << 3) | 2, ...size), content]);
}

/** Returns a piece of a model. */
export function sentencepiecePiece(text: string, type = 1, score = 0): Buffer {
  const value = Buffer.alloc(4);
  value.writeFloatLE(score);
  const fields = [protoField(1, Buffer.from(text)), Buffer.of(21), value, Buffer.of(24, type)];
  return protoField(1, Buffer.concat(fields));
}
