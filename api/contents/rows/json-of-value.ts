import { BadLine } from '../../../contracts/jsonl/fields.js';

/**
 * Returns a value of a Parquet file as JSON. Integers keep all digits. Fields that are null are left out: a column of
 * structs has every field in every row.
 * @param path the value's in messages
 * @throws BadLine
 */
export function jsonOfValue(value: unknown, path: string): string {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number' && !Number.isFinite(value)) throw new BadLine(`${path}: it has ${value}`);
  if (value === null || typeof value !== 'object' || value instanceof Date)
    return JSON.stringify(value ?? null);
  if (value instanceof Uint8Array) throw new BadLine(`${path}: it has bytes; write texts as UTF-8 strings`);
  if (Array.isArray(value) || ArrayBuffer.isView(value))
    return `[${Array.from(value as ArrayLike<unknown>, (item) => jsonOfValue(item, path)).join(', ')}]`;
  const fields = Object.entries(value).filter(([, field]) => field !== null && field !== undefined);
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}: ${jsonOfValue(field, path)}`).join(', ')}}`;
}
