/** Columns of tables that are fields of documents; the others are ignored. */
import { BadLine } from '../../../contracts/jsonl/fields.js';

/** `input`: OpenAI's preferences have JSON there, Alpaca's instructions a text. */
type Kind = 'text' | 'json' | 'label' | 'input';

const KINDS: Readonly<Record<string, Kind>> = {
  text: 'text',
  prompt: 'text',
  completion: 'text',
  chosen: 'text',
  rejected: 'text',
  instruction: 'text',
  context: 'text',
  output: 'text',
  question: 'text',
  answer: 'text',
  response: 'text',
  system: 'text',
  label: 'label',
  messages: 'json',
  conversations: 'json',
  history: 'json',
  tools: 'json',
  functions: 'json',
  input: 'input',
  preferred_output: 'json',
  non_preferred_output: 'json',
};

export const FIELDS = Object.keys(KINDS);

/** Returns the columns that are fields of documents. */
export const fieldsIn = (columns: readonly string[]) => FIELDS.filter((field) => columns.includes(field));

const LABELS: Readonly<Record<string, boolean>> = { true: true, '1': true, false: false, '0': false };

/**
 * Returns the JSON of a cell that is a text.
 * @param column one of FIELDS
 * @param columns of the table
 * @throws BadLine
 */
export function jsonOfText(column: string, cell: string, columns: readonly string[]): string {
  const kind = KINDS[column];
  const isText = kind === 'text' || (kind === 'input' && columns.includes('instruction'));
  if (isText) return JSON.stringify(cell);
  if (kind === 'label') return String(labelOf(cell));
  try {
    JSON.parse(cell);
  } catch (error) {
    throw new BadLine(`column "${column}": it is not JSON (${(error as Error).message})`);
  }
  // Valid JSON has line ends between its values only.
  return cell.replaceAll(/[\r\n]/g, ' ');
}

function labelOf(cell: string): boolean {
  const label = LABELS[cell.trim().toLowerCase()];
  if (label === undefined)
    throw new BadLine(`column "label": it must be true or false (or 1 or 0), not ${JSON.stringify(cell)}`);
  return label;
}
