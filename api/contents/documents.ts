/** Limits and parsers of the model files that are read whole. */
import { ZerofleetError } from '../../contracts/index.js';
import {
  CHAT_TEMPLATE_FILE,
  CONFIG_FILE,
  INDEX_FILE,
  TOKENIZER_CONFIG_FILE,
  TOKENIZER_FILE,
  VOCABULARY_FILES,
} from '../../formats/models/documents.js';
import { documentText, jsonObject, unreadable } from '../../formats/models/read-document.js';
import { repeatedKey } from '../../formats/safetensors/json-keys.js';
import { type JsonLimits, jsonExcess } from '../../platform/json-limits.js';

const MIB = 1024 * 1024;

interface DocumentLimits extends JsonLimits {
  bytes: number;
}

const VOCABULARY: DocumentLimits = { bytes: 64 * MIB, depth: 64, values: 5_000_000 };
const SMALL: DocumentLimits = { bytes: MIB, depth: 32, values: 50_000 };

/**
 * Several times the size of the largest public models: 33 MB and two million values in a tokenizer, some 90,000 tensors
 * in an index.
 */
const LIMITS: Readonly<Record<string, DocumentLimits>> = {
  [CONFIG_FILE]: SMALL,
  [INDEX_FILE]: { bytes: 32 * MIB, depth: 8, values: 500_000 },
  [TOKENIZER_FILE]: VOCABULARY,
  [TOKENIZER_CONFIG_FILE]: { bytes: 8 * MIB, depth: 32, values: 500_000 },
  [CHAT_TEMPLATE_FILE]: SMALL,
  ...Object.fromEntries(VOCABULARY_FILES.map((name) => [name, VOCABULARY])),
};

function limitsOf(name: string): DocumentLimits {
  return LIMITS[name] ?? SMALL;
}

/** @throws ZerofleetError `model_too_large` */
export function requireDocumentSize(name: string, bytes: number, shown = name): void {
  const most = limitsOf(name).bytes;
  if (bytes > most)
    throw new ZerofleetError(
      'model_too_large',
      `${shown} has ${bytes} bytes, and ${name} may have at most ${most}`,
      {
        details: { file: name, limit: most },
      },
    );
}

type DocumentCode =
  | 'model_config_invalid'
  | 'model_index_mismatch'
  | 'model_archive_invalid'
  | 'tokenizer_invalid';

/** Parses a JSON object within the limits of its file and without duplicate keys. @throws ZerofleetError `code` */
export function parseDocument(name: string, bytes: Uint8Array, code: DocumentCode): Record<string, unknown> {
  const excess = jsonExcess(bytes, limitsOf(name));
  if (excess !== null) throw unreadable(name, excess, code);
  const text = documentText(name, bytes, code);
  const value = jsonObject(name, text, code);
  const twice = repeatedKey(text);
  if (twice !== null)
    throw unreadable(name, `has ${JSON.stringify(twice.join('.').slice(0, 200))} twice`, code);
  return value;
}

/** Reads the `weight_map` of an index: the file of each tensor. @throws ZerofleetError `model_index_mismatch` */
export function parseIndex(name: string, bytes: Uint8Array): Map<string, string> {
  const { weight_map } = parseDocument(name, bytes, 'model_index_mismatch');
  const entries = typeof weight_map === 'object' && weight_map !== null ? Object.entries(weight_map) : null;
  if (entries === null || !entries.every((entry): entry is [string, string] => typeof entry[1] === 'string'))
    throw new ZerofleetError('model_index_mismatch', `${name} has no weight_map of tensors to files`);
  return new Map(entries);
}
