/** The JSON files of a model that are read here. */
import { ZerofleetError } from '../../contracts/index.js';
import { repeatedKey } from '../../platform/safetensors/json-keys.js';

/** Tokenizers of large vocabularies are the largest documents, with some tens of megabytes. */
export const MAX_DOCUMENT_BYTES = 128 * 1024 * 1024;

type DocumentCode =
  | 'model_config_invalid'
  | 'model_index_mismatch'
  | 'model_archive_invalid'
  | 'tokenizer_invalid';

/** @throws ZerofleetError `code` */
export function parseText(name: string, bytes: Uint8Array, code: DocumentCode): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ZerofleetError(code, `${name} is not UTF-8`, { details: { file: name } });
  }
}

/**
 * A JSON object that has no key twice.
 * @throws ZerofleetError `code`
 */
export function parseDocument(name: string, bytes: Uint8Array, code: DocumentCode): Record<string, unknown> {
  const fail = (problem: string) =>
    new ZerofleetError(code, `${name} ${problem}`, { details: { file: name } });
  const text = parseText(name, bytes, code);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw fail(`is not JSON: ${(error as Error).message.slice(0, 200)}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw fail('is no JSON object');
  const twice = repeatedKey(text);
  if (twice !== null) throw fail(`has ${JSON.stringify(twice.join('.').slice(0, 200))} twice`);
  return value as Record<string, unknown>;
}

/**
 * The `weight_map` of an index: the file of each tensor.
 * @throws ZerofleetError `model_index_mismatch`
 */
export function parseIndex(name: string, bytes: Uint8Array): Map<string, string> {
  const { weight_map } = parseDocument(name, bytes, 'model_index_mismatch');
  const entries = typeof weight_map === 'object' && weight_map !== null ? Object.entries(weight_map) : null;
  if (entries === null || !entries.every((entry): entry is [string, string] => typeof entry[1] === 'string'))
    throw new ZerofleetError('model_index_mismatch', `${name} has no weight_map of tensors to files`);
  return new Map(entries);
}
