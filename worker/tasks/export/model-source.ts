/** Files that an export takes from the uploaded models of its job. */
import { isDeepStrictEqual } from 'node:util';
import { modelKey, type ResolvedJobSpec } from '../../../contracts/index.js';
import { parseExactly } from '../../../contracts/jsonl/exact-json.js';
import { readText } from '../../../formats/encoding/tokenizer-store.js';
import {
  CHAT_TEMPLATE_FILE,
  COMPANION_FILES,
  CONFIG_FILE,
  GENERATION_CONFIG_FILE,
  TOKENIZER_CONFIG_FILE,
  TOKENIZER_FILES,
} from '../../../formats/models/documents.js';
import { documentText, jsonObject } from '../../../formats/models/read-document.js';
import { chatTemplateOf } from '../../../formats/models/tokenizer.js';
import { importConfig, tokenizerModel } from '../../../job-document/index.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { newGenerationConfig } from './generation-config.js';

/** File of an export that does not depend on the trained weights. */
interface Companion {
  name: string;
  /** May be called again. */
  content(): AsyncIterable<Uint8Array>;
}

/** Returns the folder key of a job's initial model, or null. */
export function sourceFolder({ model }: ResolvedJobSpec): string | null {
  const { init_from } = model;
  return init_from !== null && 'model' in init_from ? modelKey(init_from.model) : null;
}

/**
 * Returns the initial model's `config.json` if the job trained with the same configuration, because it may have further
 * fields. Numbers keep their format. Returns null if the job had another configuration.
 */
export async function sourceConfig(
  objects: ObjectStore,
  folder: string,
  { model }: ResolvedJobSpec,
): Promise<Record<string, unknown> | null> {
  const bytes = await objects.get(`${folder}/${CONFIG_FILE}`);
  const text = documentText(CONFIG_FILE, bytes, 'model_config_invalid');
  const { config } = importConfig(jsonObject(CONFIG_FILE, text, 'model_config_invalid'));
  return isDeepStrictEqual(config, model.config) ? (parseExactly(text) as Record<string, unknown>) : null;
}

/** Returns the model whose tokenizer matches the job's tokens; null if none is known. */
export function tokenizerSource({ model, data }: ResolvedJobSpec): string | null {
  if (data.tokenizer !== null) return tokenizerModel(data);
  const { init_from } = model;
  return init_from !== null && 'model' in init_from ? init_from.model : null;
}

/**
 * Returns the files next to the weights, sorted by name. They are those of the initial model, with these exceptions:
 * - the tokenizer of the job if it is another model's, and no tokenizer for bytes;
 * - the job's chat template and the tokens at which answers end, if they are others.
 */
export async function companionsOf(objects: ObjectStore, spec: ResolvedJobSpec): Promise<Companion[]> {
  const source = sourceFolder(spec);
  const tokenizer = tokenizerModel(spec.data);
  const files = source === null ? [] : await filesOf(objects, source, COMPANION_FILES);
  if (spec.data.tokenizer === null) return files;
  const others = files.filter(({ name }) => !isTokenizerFile(name));
  // The job's tokens are bytes, which the model's own tokenizer does not match.
  if (tokenizer === null) return others;
  const folder = modelKey(tokenizer);
  const theirs = folder === source ? files : await filesOf(objects, folder, TOKENIZER_FILES);
  const generation = await newGenerationConfig(objects, spec, { tokenizer, source });
  const changed = [
    ...(await newTemplate(objects, folder, spec.data.chat_template)),
    ...(generation === null ? [] : [textFile(GENERATION_CONFIG_FILE, generation)]),
  ];
  const all = new Map(others.map((file) => [file.name, file]));
  for (const file of [...theirs, ...changed]) all.set(file.name, file);
  return [...all.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function isTokenizerFile(name: string): boolean {
  return (TOKENIZER_FILES as readonly string[]).includes(name);
}

/** Returns the file of a chat template that differs from the model's own. */
async function newTemplate(
  objects: ObjectStore,
  folder: string,
  template: string | null,
): Promise<Companion[]> {
  if (template === null) return [];
  const config = await readText(objects, folder, TOKENIZER_CONFIG_FILE);
  const file = await readText(objects, folder, CHAT_TEMPLATE_FILE);
  const fields = jsonObject(TOKENIZER_CONFIG_FILE, config ?? '{}', 'tokenizer_invalid');
  if (template === chatTemplateOf(fields, file ?? undefined)) return [];
  return [textFile(CHAT_TEMPLATE_FILE, template)];
}

function textFile(name: string, text: string): Companion {
  const content = async function* () {
    yield Buffer.from(text);
  };
  return { name, content };
}

async function filesOf(
  objects: ObjectStore,
  folder: string,
  wanted: readonly string[],
): Promise<Companion[]> {
  const files: Companion[] = [];
  for await (const { key } of objects.list(`${folder}/`)) {
    const name = key.slice(folder.length + 1);
    const content = async function* () {
      yield* await objects.stream(key);
    };
    if (wanted.includes(name)) files.push({ name, content });
  }
  return files;
}
