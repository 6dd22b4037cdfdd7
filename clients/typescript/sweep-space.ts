/** Values of the fields of a sweep, as people write them. */
import type { SweepRange, SweepValue } from '../../contracts/types.js';

const RANGE = /^(?<min>[^.].*?)\.\.(?<max>[^:]+)(?::(?<scale>linear|log|integer))?$/;
const WORDS: Readonly<Record<string, SweepValue>> = { true: true, false: false, null: null };

/**
 * Reads the values of a field.
 * @param text `path=a,b,c`, or `path=min..max`, with `:log` or `:integer` behind it; null if it is neither
 */
export function rangeOf(text: string): [path: string, range: SweepRange] | null {
  const [, path = '', values = ''] = /^\s*((?:[^=\\\s]|\\.)+)\s*=\s*(.*?)\s*$/s.exec(text) ?? [];
  if (path === '' || values === '') return null;
  const { min, max, scale } = RANGE.exec(values)?.groups ?? {};
  if (isNumber(min) && isNumber(max))
    return [path, { min: Number(min), max: Number(max), ...(scale && { scale: scale as 'log' }) }];
  const listed = values.split(',').map((value) => value.trim());
  return listed.includes('') ? null : [path, { values: listed.map(scalarOf) }];
}

const isNumber = (text: string | undefined): text is string =>
  text !== undefined && text.trim() !== '' && Number.isFinite(Number(text));

function scalarOf(text: string): SweepValue {
  if (isNumber(text)) return Number(text);
  return Object.hasOwn(WORDS, text) ? (WORDS[text] ?? null) : text;
}
