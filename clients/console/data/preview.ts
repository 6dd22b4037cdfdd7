/** The beginning of a dataset as text. */
import type { Dataset } from '../../../contracts/types.js';

/** Bytes that a preview reads. */
export const PREVIEW_BYTES = 16_384;
const MAX_LINES = 50;

/**
 * Returns the first lines of a text, or documents of a JSONL file with one field a line.
 * @param content the beginning of the dataset @param isWhole whether it is all of it
 */
export function previewOf(content: Uint8Array, format: Dataset['format'], isWhole: boolean): string[] {
  // A character whose end was not read is left out.
  const text = new TextDecoder().decode(content, { stream: !isWhole });
  const lines = text.split('\n');
  // So is a document.
  if (format === 'jsonl' && (!isWhole || lines.at(-1) === '')) lines.pop();
  const shown = lines.slice(0, MAX_LINES);
  return format === 'jsonl' ? shown.map(indented) : shown;
}

function indented(line: string): string {
  try {
    return JSON.stringify(JSON.parse(line), null, 2);
  } catch {
    return line;
  }
}
