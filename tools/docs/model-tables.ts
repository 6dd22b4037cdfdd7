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
  enum?: string[];
  properties?: Record<string, Schema>;
}

type Schemas = Record<string, Schema>;

function propertiesOf(schema: Schema, schemas: Schemas): Record<string, Schema> {
  const name = schema.$ref?.split('/').at(-1);
  const parts = [...(name ? [schemas[name] ?? {}] : []), ...(schema.allOf ?? [])];
  return Object.assign({}, ...parts.map((part) => propertiesOf(part, schemas)), schema.properties);
}

/** The fields of a family, by its schema. */
function fieldsOfSchema(type: ModelType, schemas: Schemas): Record<string, Schema> {
  const all = Object.values(schemas).map((schema) => propertiesOf(schema, schemas));
  const [found] = all.filter(({ model_type }) => model_type?.enum?.join() === type);
  if (found === undefined) throw new Error(`openapi.yaml has no schema of ${type}`);
  return found;
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

/** Families whose required fields are the same share a table. */
function tablesOf(types: readonly ModelType[]): ModelType[][] {
  const required = (type: ModelType) =>
    fieldsOf(type)
      .flatMap(({ name, fallback }) => (fallback === null ? [name] : []))
      .join();
  return [...groupBy(types, required).values()];
}

const code = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');

const standard = ({ fallback }: FieldFact) => fallback ?? '**required**';

/** The default of a field, with the families that have it unless all families of the table do. */
function defaultsOf(name: string, types: readonly ModelType[]): string {
  const defaults = types.flatMap((type) =>
    fieldsOf(type).flatMap((fact) => (fact.name === name ? [{ type, text: standard(fact) }] : [])),
  );
  const groups = [...groupBy(defaults, ({ text }) => text)];
  if (groups.length === 1 && defaults.length === types.length) return defaults[0]?.text ?? '';
  return groups.map(([text, facts]) => `${text} (${code(facts.map(({ type }) => type))})`).join(', ');
}

function table(types: readonly ModelType[], schemas: Schemas): string {
  const facts = new Map(types.flatMap(fieldsOf).map((fact) => [fact.name, fact]));
  const properties = Object.assign({}, ...types.map((type) => fieldsOfSchema(type, schemas))) as Record<
    string,
    Schema
  >;
  const rows = [...facts.values()].map(
    ({ name, aliases, type }) =>
      `| ${code([name, ...aliases])} | ${type} | ${defaultsOf(name, types)} | ${properties[name]?.description ?? ''} |`,
  );
  return [`### ${code(types)}\n`, '| field | type | default | meaning |', '|---|---|---|---|', ...rows].join(
    '\n',
  );
}

/** The fields of each family as Markdown, from the requirements of the import. */
export function renderModelTables(): string {
  const document = parse(readFileSync(join(projectRoot(), 'openapi.yaml'), 'utf8')) as {
    components: { schemas: Schemas };
  };
  return tablesOf(MODEL_TYPES)
    .map((types) => table(types, document.components.schemas))
    .join('\n\n');
}
