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

/** A text about a field in each family that has it, grouped by the text. */
function textsOf(name: string, types: readonly ModelType[], textOf: (fact: FieldFact) => string) {
  const texts = types.flatMap((type) =>
    fieldsOf(type).flatMap((fact) => (fact.name === name ? [{ type, text: textOf(fact) }] : [])),
  );
  return { isOfAll: texts.length === types.length, groups: [...groupBy(texts, ({ text }) => text)] };
}

function withFamilies(groups: ReturnType<typeof textsOf>['groups']): string {
  return groups.map(([text, families]) => `${text} (${code(families.map(({ type }) => type))})`).join(', ');
}

/** The text, with the families where it differs among them. */
function described(name: string, types: readonly ModelType[], textOf: (fact: FieldFact) => string): string {
  const { groups } = textsOf(name, types, textOf);
  return groups.length === 1 ? (groups[0]?.[0] ?? '') : withFamilies(groups);
}

/** The default of a field, with the families that have it unless all families of the table do. */
function defaultsOf(name: string, types: readonly ModelType[]): string {
  const { isOfAll, groups } = textsOf(name, types, ({ fallback }) => fallback ?? '**required**');
  return groups.length === 1 && isOfAll ? (groups[0]?.[0] ?? '') : withFamilies(groups);
}

/** The longest description, if the others are its beginning; otherwise each with its families. */
function meaningOf(name: string, types: readonly ModelType[]): string {
  const { groups } = textsOf(name, types, ({ schema }) => schema.description ?? '');
  const texts = groups.map(([text]) => text).toSorted((a, b) => b.length - a.length);
  const [longest = ''] = texts;
  return texts.every((text) => longest.startsWith(text.replace(/\.$/, ''))) ? longest : withFamilies(groups);
}

function table(types: readonly ModelType[]): string {
  const facts = new Map(types.flatMap(fieldsOf).map((fact) => [fact.name, fact]));
  const rows = [...facts.values()].map(({ name, aliases }) => {
    const type = described(name, types, (fact) => fact.type);
    const meaning = meaningOf(name, types);
    return `| ${code([name, ...aliases])} | ${type} | ${defaultsOf(name, types)} | ${meaning} |`;
  });
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
