/** The small models of all families, which have golden files: those of job-document/testing/families/. */
import { readFileSync } from 'node:fs';
import type { ModelConfig } from '../../contracts/index.js';
import { fieldsOf, type ModelType } from '../../job-document/index.js';

type Fields = Record<string, unknown>;

const read = (file: string) => JSON.parse(readFileSync(`job-document/testing/${file}`, 'utf8'));
const SIZES: Fields = read('family-sizes.json');

/** Returns the models of a family by name. @param sizes in place of those of the golden files */
export function familyModels(type: ModelType, sizes: Fields = {}): Record<string, ModelConfig> {
  const { models }: { models: Record<string, Fields> } = read(`families/${type}.json`);
  const known = new Set(fieldsOf(type).flatMap(({ name, aliases }) => [name, ...aliases]));
  const own = Object.fromEntries(Object.entries({ ...SIZES, ...sizes }).filter(([name]) => known.has(name)));
  // A list of layers has their number.
  const layers = ({ layer_types: types }: Fields) =>
    Array.isArray(types) && { num_hidden_layers: types.length };
  return Object.fromEntries(
    Object.entries(models).map(([name, fields]) => [
      name,
      { model_type: type, ...own, ...layers(fields), ...fields },
    ]),
  );
}

/** Returns the first model of a family. */
export function firstModel(type: ModelType, sizes?: Fields): ModelConfig {
  return Object.values(familyModels(type, sizes))[0] as ModelConfig;
}
