import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type FieldFact, fieldsOf, MODEL_TYPES, type ModelType } from '../../job-document/index.js';
import { projectRoot } from '../../platform/process/root.js';

/** The parts of a JSON schema that openapi.yaml uses for the configuration of a family. */
interface Schema {
  $ref?: string;
  allOf?: Schema[];
  description?: string;
  properties?: Record<string, Schema>;
}

type Schemas = Record<string, Schema>;

const SCHEMA_OF: Readonly<Record<ModelType, string>> = {
  gpt2: 'ResolvedGpt2Config',
  llama: 'ResolvedLlamaConfig',
  mistral: 'ResolvedMistralConfig',
  qwen2: 'ResolvedQwen2Config',
  qwen3: 'ResolvedQwen3Config',
  mixtral: 'ResolvedMixtralConfig',
};

function propertiesOf(schema: Schema, schemas: Schemas): Record<string, Schema> {
  const name = schema.$ref?.split('/').at(-1);
  const parts = [...(name ? [schemas[name] ?? {}] : []), ...(schema.allOf ?? [])];
  return Object.assign({}, ...parts.map((part) => propertiesOf(part, schemas)), schema.properties);
}

function row({ name, aliases, type, fallback }: FieldFact, properties: Record<string, Schema>): string {
  const names = [name, ...aliases].map((one) => `\`${one}\``).join(', ');
  const standard = fallback === null ? '**required**' : fallback;
  return `| ${names} | ${type} | ${standard} | ${properties[name]?.description ?? ''} |`;
}

/** The fields of each family as Markdown, from the requirements of the import. */
export function renderModelTables(): string {
  const document = parse(readFileSync(join(projectRoot(), 'openapi.yaml'), 'utf8')) as {
    components: { schemas: Schemas };
  };
  const { schemas } = document.components;
  const tables = MODEL_TYPES.map((type) => {
    const properties = propertiesOf(schemas[SCHEMA_OF[type]] ?? {}, schemas);
    const rows = fieldsOf(type).map((fact) => row(fact, properties));
    return [`### \`${type}\`\n`, '| field | type | default | meaning |', '|---|---|---|---|', ...rows].join(
      '\n',
    );
  });
  return tables.join('\n\n');
}
