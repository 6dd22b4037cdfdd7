/** What an export takes over from the uploaded model that its job began with. */
import { isDeepStrictEqual } from 'node:util';
import { importConfig, modelKey, type ResolvedJobSpec } from '../../contracts/index.js';
import { COMPANION_FILES, CONFIG_FILE } from '../../platform/models/documents.js';
import type { ObjectStore } from '../../platform/object-store/index.js';

/** Key of the folder of the model that a job began with, or null. */
export function sourceFolder({ model }: ResolvedJobSpec): string | null {
  const { init_from } = model;
  return init_from !== null && 'model' in init_from ? modelKey(init_from.model) : null;
}

/**
 * The model's own `config.json` where the job trained with just that: it may have fields that mean something to others.
 * Null where the job had a configuration of its own.
 */
export async function sourceConfig(
  objects: ObjectStore,
  folder: string,
  { model }: ResolvedJobSpec,
): Promise<Record<string, unknown> | null> {
  const config = JSON.parse(String(await objects.get(`${folder}/${CONFIG_FILE}`)));
  return isDeepStrictEqual(importConfig(config).config, model.config) ? config : null;
}

/** The names of its tokenizer's files and the like, sorted. */
export async function companionsOf(objects: ObjectStore, folder: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { key } of objects.list(`${folder}/`)) {
    const name = key.slice(folder.length + 1);
    if ((COMPANION_FILES as readonly string[]).includes(name)) names.push(name);
  }
  return names;
}
