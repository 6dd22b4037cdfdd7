/** Properties of a dataset by the name of its file. */
import type { Dataset } from './types.js';

const FORMATS: Readonly<Record<string, Dataset['format']>> = {
  jsonl: 'jsonl',
  ndjson: 'jsonl',
  json: 'jsonl',
  csv: 'jsonl',
  parquet: 'jsonl',
  tokens: 'tokens',
  bin: 'tokens',
};
const COMPRESSION = /\.(gz|zst)$/i;

/** The name of a file without its extensions, to name what is made of it. */
export const stemOfName = (name: string) => name.replace(/(\.[a-z0-9]{1,8}){1,2}$/i, '') || name;

export function isCompressedName(name: string): boolean {
  return COMPRESSION.test(name);
}

/** The format of a file by its extension, before that of a compression. */
export function formatOfName(name: string): Dataset['format'] {
  const extension = name.replace(COMPRESSION, '').split('.').at(-1)?.toLowerCase() ?? '';
  return FORMATS[extension] ?? 'text';
}
