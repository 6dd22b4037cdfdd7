import {
  describedFamily,
  type FieldFact,
  fieldsOf,
  MODEL_TYPES,
  type ModelType,
} from '../../job-document/index.js';

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

function table(types: readonly ModelType[]): string {
  const facts = new Map(types.flatMap(fieldsOf).map((fact) => [fact.name, fact]));
  const rows = [...facts.values()].map(
    ({ name, aliases, type, schema }) =>
      `| ${code([name, ...aliases])} | ${type} | ${defaultsOf(name, types)} | ${schema.description ?? ''} |`,
  );
  return [`### ${code(types)}\n`, '| field | type | default | meaning |', '|---|---|---|---|', ...rows].join(
    '\n',
  );
}

function familyTable(): string {
  const rows = MODEL_TYPES.map((type) => `| \`${type}\` | ${describedFamily(type)} |`);
  return ['| `model_type` | family |', '|---|---|', ...rows].join('\n');
}

/** The families and their fields as Markdown, from their files and the requirements of the import. */
export function renderModelTables(): string {
  return [familyTable(), ...tablesOf(MODEL_TYPES).map(table)].join('\n\n');
}
